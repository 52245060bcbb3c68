//! What may change of a version that is published: what is said against it, its tags, and where its package has moved.
//!
//! `writer.rs` writes it. Its content never changes.

use std::collections::BTreeMap;

use mu_provider::NO_REASON;
use mu_provider::publishable::MOST_TAGS;
use serde_json::{Map, Value, json};

use crate::HubError;
use crate::file::Read;
use crate::lines::{Notice, PublishedLine};
use crate::names;

/// What to do with the tags of a version. At most one version of a package has a tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// The version has these tags, and no others.
    Set(Vec<String>),
    /// The version has these tags in addition.
    Add(Vec<String>),
    /// The version no longer has these tags.
    Remove(Vec<String>),
}

/// The changes of a published version. `None` means no change.
#[derive(Debug, Clone, Default)]
pub struct Change {
    /// What is said against it from now on, and why, or `None` if it is taken back; an empty reason is none, and keeps the one there is.
    pub notices: BTreeMap<Notice, Option<String>>,
    /// Its tags.
    pub tags: Option<Tags>,
    /// The package that replaced this one, which is recorded in every version.
    pub moved_to: Option<Option<String>>,
    /// The ETags of index files that it was made for; with none, it is for any.
    pub expected: Vec<String>,
}

impl Change {
    /// Whether it breaks a rule, for the package `name`.
    pub(crate) fn check(&self, name: &str) -> Result<(), HubError> {
        for reason in self.notices.values().flatten() {
            names::check_reason(reason)?;
        }
        if let Some(Tags::Set(named) | Tags::Add(named) | Tags::Remove(named)) = &self.tags {
            named.iter().try_for_each(|tag| names::check_tag(tag))?;
        }
        match &self.moved_to {
            Some(Some(to)) => names::check_moved_to(name, to),
            _ => Ok(()),
        }
    }

    /// Whether the index file is not one that it was made for.
    pub(crate) fn is_for_another_index(&self, index: Option<&Read>) -> bool {
        let e_tag = index.and_then(|index| index.mark.e_tag.as_ref());
        let is_any = self.expected.is_empty() || self.expected.iter().any(|one| one == "*");
        !is_any && !self.expected.iter().any(|one| Some(one) == e_tag)
    }

    /// Changes one line of the package; `is_it` says whether it is the line of the version.
    pub(crate) fn apply(&self, map: &mut Map<String, Value>, is_it: bool) -> bool {
        let mut changed = false;
        if let Some(tags) = &self.tags {
            changed |= tags.apply(map, is_it);
        }
        for (notice, reason) in self.notices.iter().filter(|_| is_it) {
            let key = notice.key();
            let value = reason.as_ref().map(|reason| match (reason.as_str(), map.get(key)) {
                ("", Some(Value::String(known))) => known.as_str().into(),
                ("", _) => NO_REASON.into(),
                (reason, _) => reason.into(),
            });
            changed |= set(map, key, value);
        }
        if let Some(to) = &self.moved_to {
            changed |= set(map, "movedTo", to.as_deref().map(Value::from));
        }
        changed
    }
}

impl Tags {
    /// Changes the tags of one line; `is_it` says whether it is the line of the version.
    fn apply(&self, map: &mut Map<String, Value>, is_it: bool) -> bool {
        let (Self::Set(named) | Self::Add(named) | Self::Remove(named)) = self;
        let present: Vec<String> = texts(map.get("tags"));
        let mut wanted = present.clone();
        match (self, is_it) {
            (Self::Remove(_), false) => {}
            (Self::Set(_), true) => wanted.clear(),
            _ => wanted.retain(|tag| !named.contains(tag)),
        }
        if is_it && !matches!(self, Self::Remove(_)) {
            for tag in named {
                if !wanted.contains(tag) {
                    wanted.push(tag.clone());
                }
            }
        }
        wanted != present && set(map, "tags", (!wanted.is_empty()).then(|| json!(wanted)))
    }
}

/// Whether more tags are on a version than may be.
pub(crate) fn check_tags(line: &PublishedLine) -> Result<(), HubError> {
    let count = line.texts("tags").count();
    if count <= MOST_TAGS {
        return Ok(());
    }
    let reason = format!("it would have {count} tags, and at most {MOST_TAGS} are allowed");
    Err(names::refused(&format!("the change of {}", line.describe()), &reason))
}

/// Sets or removes a key; returns whether that changed anything.
pub(crate) fn set(map: &mut Map<String, Value>, key: &str, value: Option<Value>) -> bool {
    match value {
        Some(value) if map.get(key) == Some(&value) => false,
        Some(value) => {
            map.insert(key.to_owned(), value);
            true
        }
        // `shift_remove` keeps the order of the other keys.
        None => map.shift_remove(key).is_some(),
    }
}

/// The texts in a list, or none.
pub(crate) fn texts(value: Option<&Value>) -> Vec<String> {
    let texts = value.and_then(Value::as_array).into_iter().flatten();
    texts.filter_map(Value::as_str).map(str::to_owned).collect()
}
