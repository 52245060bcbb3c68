//! A package that was copied into another namespace, and the names that it uses for other packages.
//!
//! Its manifest stays as it is, so it still uses the old names of its neighbours. Its index line uses the new
//! names.

use serde_json::{Map, Value};

use crate::reference::{Name, Reference};

/// The namespace of a package before it was copied, and the new one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// The old namespace; `None` for no namespace at all.
    pub from: Option<Name>,
    /// The new one.
    pub to: Option<Name>,
}

impl Rename {
    /// The shortest rename that turns the name `from` into `to`: both without the segments at the end that
    /// they have in common.
    pub fn between(from: &Name, to: &Name) -> Self {
        let (from, to): (Vec<_>, Vec<_>) = (from.segments().collect(), to.segments().collect());
        let common = from.iter().rev().zip(to.iter().rev()).take_while(|(a, b)| a == b).count();
        let begin = |segments: &[&str]| {
            let kept = segments.get(..segments.len() - common).unwrap_or_default();
            Name::parse(&kept.join("/")).ok()
        };
        Self { from: begin(&from), to: begin(&to) }
    }

    /// The new name of a package, if it was in the namespace.
    pub fn now(&self, name: &Name) -> Option<Name> {
        let rest = name.strip_prefix(self.from.as_ref()?)?;
        Some(self.to.as_ref().map_or_else(|| rest.clone(), |to| to.join(&rest)))
    }

    /// Replaces old names of packages in an index line by their new names. A name with a base always means a
    /// package there.
    pub fn apply(&self, line: &mut Map<String, Value>) {
        let dependencies = line.get_mut("dependencies").and_then(Value::as_array_mut);
        for dependency in dependencies.into_iter().flatten() {
            let text = match dependency {
                Value::Object(detailed) => detailed.get_mut("ref"),
                text => Some(text),
            };
            if let Some(text) = text
                && let Some(renamed) = text.as_str().and_then(|text| self.reference(text))
            {
                *text = renamed.into();
            }
        }
    }

    /// The reference with the name of now, if it has another one.
    fn reference(&self, text: &str) -> Option<String> {
        let reference = Reference::parse(text).ok()?;
        if reference.base().is_some() || reference.local().is_some() {
            return None;
        }
        let name = reference.name();
        let rest = text.strip_prefix(name.as_str())?;
        Some(format!("{}{rest}", self.now(name)?.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn name(text: &str) -> Name {
        Name::parse(text).expect("is a name")
    }

    #[test]
    fn what_was_renamed_is_what_differs() {
        for (from, to, old, new) in [
            ("contrib/conf", "internal/conf", Some("contrib"), Some("internal")),
            ("a/b/c", "x/b/c", Some("a"), Some("x")),
            ("conf", "internal/conf", None, Some("internal")),
            ("a/conf", "conf", Some("a"), None),
        ] {
            let rename = Rename::between(&name(from), &name(to));
            assert_eq!((rename.from, rename.to), (old.map(name), new.map(name)), "{from} {to}");
        }
    }

    #[test]
    fn dependencies_are_called_by_their_new_names() {
        let rename = Rename::between(&name("contrib/sub/conf"), &name("internal/sub/conf"));
        let line = json!({ "dependencies": [
            "contrib/a#^1", "b#^1", "contribute/c", "x.example/contrib/d", "contrib/sub/e",
            {"ref": "contrib/f#2.x", "channel": "stable"},
        ]});
        let mut line = line.as_object().expect("is an object").clone();
        rename.apply(&mut line);
        let expected = json!([
            "internal/a#^1", "b#^1", "contribute/c", "x.example/contrib/d", "internal/sub/e",
            {"ref": "internal/f#2.x", "channel": "stable"},
        ]);
        assert_eq!(line["dependencies"], expected);
    }
}
