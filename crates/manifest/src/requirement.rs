//! What a package needs: dependencies (a list of references, or a map from local names), capabilities (`compute.mu.com/v1/VM`),
//! which packages also provide, and constraints over facts of the runtime (`kubernetes: >=1.25`).
//!
//! Every form of a dependency becomes a [`Requirement`]. Nothing here checks whether such a package exists; selection decides
//! which package provides a capability.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use mu_provider::{Dependency, DetailedDependency};

use super::FileWarning;
use super::schema::LongDependency;
use super::source::{SourceError, Table, Text, TextProblem, Value, line_at_offset};
use crate::reference::{Base, Name, Range, Reference, Version, VersionSpec};

/// The word in the comment behind an entry that only other packages need.
pub(super) const INDIRECT: &str = "indirect";
/// The key with the same meaning, for entries that cannot have a comment: in JSON, and among others in
/// brackets.
pub(super) const INDIRECT_KEY: &str = "x-indirect";

/// One dependency of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The local name, in the map form.
    pub alias: Option<String>,
    /// The package and the accepted versions.
    pub reference: Reference,
    /// Only versions in this channel.
    pub channel: Option<String>,
    /// Only versions of this app version (a prefix of whole components).
    pub app_version: Option<String>,
    /// Whether prereleases are accepted too.
    pub prerelease: bool,
    /// Whether only other packages need it; written as the comment `# indirect`.
    pub indirect: bool,
    /// Its line in the manifest, counted from 1; 0 if it is not from a file.
    pub line: usize,
}

impl Requirement {
    /// A dependency with only a reference.
    pub fn new(reference: Reference) -> Self {
        Self {
            alias: None,
            reference,
            channel: None,
            app_version: None,
            prerelease: false,
            indirect: false,
            line: 0,
        }
    }

    /// The dependency as an index line writes it: local names and marks are left out.
    pub fn to_wire(&self) -> Dependency {
        let reference = self.reference.to_string();
        if self.channel.is_none() && self.app_version.is_none() && !self.prerelease {
            return Dependency::Reference(reference);
        }
        Dependency::Detailed(Box::new(DetailedDependency {
            reference,
            channel: self.channel.clone(),
            app_version: self.app_version.clone(),
            prerelease: self.prerelease,
        }))
    }

    /// What two references to one package have in common, as far as a manifest alone shows.
    pub(super) fn package_key(reference: &Reference) -> PackageKey {
        let local = reference.local().map(|folder| folder.trim_end_matches('/').to_owned());
        let name = local.unwrap_or_else(|| reference.name().to_string());
        (reference.base().cloned(), name)
    }
}

pub(super) type PackageKey = (Option<Base>, String);

/// Reads a `dependencies` or `devDependencies` value.
pub(super) fn read(
    value: Value<'_>,
    warnings: &mut Vec<FileWarning>,
) -> Result<Vec<Requirement>, SourceError> {
    let entries: Vec<(Option<Text<'_>>, Value<'_>)> = if value.is_table() {
        value.entries()?.map(|(key, value)| (Some(key), value)).collect()
    } else if value.is_list() {
        value.list()?.map(|value| (None, value)).collect()
    } else {
        let help = match value.as_list() {
            Some(list) if list.contains(", ") => format!("write `{list}`"),
            Some(_) => format!("write `- {}` on a line of its own", value.word()?.as_str()),
            None => "write `- aws/ec2#^1.0.6` on a line of its own".to_owned(),
        };
        return Err(value.error("dependencies must be a list or a map").help(help));
    };
    let mut requirements = Vec::with_capacity(entries.len());
    let mut seen = HashMap::new();
    for (key, value) in entries {
        let (requirement, name) = Written { key, value }.read()?;
        let package = Requirement::package_key(&requirement.reference);
        let span = name.span();
        if let Some(first) = seen.insert(package, span.clone()) {
            let text = value.document().text();
            let (line, again) =
                (line_at_offset(text, first.start), line_at_offset(text, span.start));
            let name = requirement.reference.with_version(None);
            let message = match line == again {
                true => format!("`{name}` is listed twice on line {line}"),
                false => format!("`{name}` is listed twice, on lines {line} and {again}"),
            };
            return Err(value
                .document()
                .error(span, message)
                .related(first, "first here")
                .help("keep one of them"));
        }
        warnings.extend(pointless(&requirement, value));
        warnings.extend(cut_off(&requirement, value));
        requirements.push(requirement);
    }
    Ok(requirements)
}

/// Warns that a version is a comment, because there is a space before its `#`.
fn cut_off(requirement: &Requirement, value: Value<'_>) -> Option<FileWarning> {
    let document = value.document();
    let comment = &document.text()[document.comment_after(value.span().end)?];
    let version = comment.strip_prefix('#')?.trim_end();
    let is_version = !version.starts_with(char::is_whitespace)
        && VersionSpec::parse(version)
            .is_ok_and(|spec| spec.as_tag().is_none() || matches!(spec, VersionSpec::Digest(_)));
    let reference = &requirement.reference;
    if !is_version || reference.version().is_some() {
        return None;
    }
    let message = format!(
        "`#{version}` is a comment, because there is a space before it; write `{reference}#{version}` for that version"
    );
    Some(FileWarning::new(document.path(), Some(requirement.line), message))
}

/// Warns that `prerelease` has no effect together with an exact version. A channel does: the version must be
/// in it.
fn pointless(requirement: &Requirement, value: Value<'_>) -> Option<FileWarning> {
    let pinned = requirement.reference.version().filter(|version| version.is_pinned())?;
    if !requirement.prerelease {
        return None;
    }
    let message = format!("`prerelease` has no effect with the exact version `{pinned}`");
    Some(FileWarning::new(value.document().path(), Some(requirement.line), message))
}

/// A dependency as written in the file.
struct Written<'d> {
    key: Option<Text<'d>>,
    value: Value<'d>,
}

impl<'d> Written<'d> {
    /// What it says, and the text that names the package.
    fn read(self) -> Result<(Requirement, Text<'d>), SourceError> {
        let document = self.value.document();
        let (reference, name, table) = if self.value.is_table() {
            let table = self.long_form()?;
            let (reference, name) = self.long_reference(table)?;
            (reference, name, Some(table))
        } else {
            let text = self.value.word().map_err(|error| match &self.key {
                Some(key) if self.value.is_null() => key
                    .error("this dependency has no version")
                    .help("write `latest` to accept any version"),
                _ => error,
            })?;
            let (reference, name) = self.short_reference(text)?;
            (reference, name, None)
        };
        let alias = self.alias(&reference)?;
        let mut requirement = Requirement { alias, ..Requirement::new(reference) };
        if let Some(table) = table {
            requirement.channel = table.string(LongDependency::channel)?;
            requirement.app_version =
                table.word(LongDependency::app_version)?.map(|text| text.as_str().to_owned());
            requirement.prerelease = table.flag(LongDependency::prerelease)?;
            requirement.indirect = table.flag(INDIRECT_KEY)?;
        }
        requirement.indirect |= document
            .comment_after(self.value.span().end)
            .is_some_and(|comment| is_indirect_mark(&document.text()[comment]));
        requirement.line = document.line_of(name.span().start);
        Ok((requirement, name))
    }

    fn long_form(&self) -> Result<Table<'d>, SourceError> {
        self.value.table(LongDependency::KEYS).map_err(|error| {
            // `- utils: ^1` in a list is a map with the key `utils`.
            let single = self.key.is_none() && self.value.entries().is_ok_and(|e| e.count() == 1);
            let is_guessed = error.help_text().is_some_and(|help| help.starts_with("did you mean"));
            let has = |theirs: &[&str]| {
                let mut keys = self.value.entries().into_iter().flatten();
                keys.any(|(key, _)| theirs.contains(&key.as_str()))
            };
            if is_guessed {
                error
            } else if has(&["git"]) {
                // As Cargo and Bundler name what they need.
                error.help("write the repository, and the tag or range, as `ref`: `ref: git+https://HOST/x.git#v1.0.0`")
            } else if has(&["name", "package", "source"]) {
                // As Helm and Terraform name it.
                error.help("write the package as `ref`: `ref: aws/ec2`, and `version` beside it")
            } else if single {
                error.help("in a list, write the name and the version together: `name#version`")
            } else {
                error
            }
        })
    }

    fn long_reference(&self, table: Table<'d>) -> Result<(Reference, Text<'d>), SourceError> {
        let version = table.word(LongDependency::version)?;
        let Some(text) = table.text(LongDependency::r#ref)? else {
            let (Some(key), Some(version)) = (&self.key, version) else {
                return Err(self.value.error("a dependency needs `ref`"));
            };
            return Ok((named_by_key(key, &version)?, key.clone()));
        };
        let reference = text.parse(Reference::parse)?;
        match version {
            None => Ok((reference, text)),
            Some(version) if reference.version().is_some() => {
                Err(version.error("the version is already in `ref`"))
            }
            Some(version) => {
                let spec = version.parse(VersionSpec::parse)?;
                Ok((reference.with_version(Some(spec)), text))
            }
        }
    }

    /// A reference; in the map form also a version alone, of the package that the key names.
    fn short_reference(&self, text: Text<'d>) -> Result<(Reference, Text<'d>), SourceError> {
        match &self.key {
            Some(key) if is_version_alone(text.as_str()) => {
                Ok((named_by_key(key, &text)?, key.clone()))
            }
            _ => Ok((text.parse(Reference::parse)?, text)),
        }
    }

    /// The local name: any valid name, or the whole text of the reference.
    fn alias(&self, reference: &Reference) -> Result<Option<String>, SourceError> {
        let Some(key) = &self.key else { return Ok(None) };
        let named = Reference::parse(key.as_str());
        let same = named.is_ok_and(|named| {
            Requirement::package_key(&named) == Requirement::package_key(reference)
        });
        if !same {
            key.parse(crate::reference::Name::parse)?;
        }
        Ok(Some(key.as_str().to_owned()))
    }
}

/// Whether a value in the map form is only a version: text that does not name a place.
///
/// A branch with a slash (`release/2024`) reads as a package; it needs the `#` of a reference.
pub fn is_version_alone(text: &str) -> bool {
    !text.contains(['#', '/', ':'])
}

fn named_by_key(key: &Text<'_>, version: &Text<'_>) -> Result<Reference, SourceError> {
    let reference = key.parse(Reference::parse)?;
    if reference.version().is_some() {
        let at = key.as_str().find('#').unwrap_or_default();
        return Err(key.problem(
            TextProblem::new("the version goes after the colon, not into the key")
                .at(at..key.as_str().len()),
        ));
    }
    Ok(reference.with_version(Some(version.parse(VersionSpec::parse)?)))
}

/// Whether a comment marks an entry that only other packages need: `# indirect`, or `# indirect; why`.
pub(super) fn is_indirect_mark(comment: &str) -> bool {
    let words = comment.trim_start_matches('#').trim();
    words.strip_prefix(INDIRECT).is_some_and(|rest| rest.is_empty() || rest.starts_with(';'))
}

/// Something that a package provides or requires: `GROUP/VERSION/KIND`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Capability(Arc<str>);

impl Capability {
    /// Reads a capability.
    ///
    /// # Errors
    ///
    /// When the text does not have three segments, or one of them cannot be a file name.
    pub fn parse(text: &str) -> Result<Self, TextProblem> {
        let expected = "such as `compute.mu.com/v1/VM`";
        let name = Name::parse(text).map_err(|error| TextProblem::from(error).help(expected))?;
        if name.segments().count() != 3 || name.as_str() != text {
            return Err(TextProblem::new(format!(
                "`{text}` is not a valid capability: expected GROUP/VERSION/KIND"
            ))
            .help(expected));
        }
        Ok(Self(text.into()))
    }

    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Group, version and kind.
    pub fn parts(&self) -> (&str, &str, &str) {
        let mut parts = self.0.splitn(3, '/');
        let mut part = || parts.next().unwrap_or_default();
        (part(), part(), part())
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(&self.0)
    }
}

/// What a constraint requires of a fact of the runtime: a range, or an exact word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Constraint {
    /// A range of versions.
    Range(Range),
    /// Exactly this word.
    Word(String),
}

impl Constraint {
    /// Reads a constraint: a range if the text is one, and otherwise a word.
    ///
    /// # Errors
    ///
    /// When the text begins like a range and is not a valid one.
    pub fn parse(text: &str) -> Result<Self, TextProblem> {
        match Range::parse(text) {
            Ok(range) => Ok(Self::Range(range)),
            Err(error) if text.is_empty() || text.starts_with(['<', '>', '=', '^', '~', '*']) => {
                Err(TextProblem::from(error))
            }
            Err(_) => Ok(Self::Word(text.to_owned())),
        }
    }

    /// Whether a runtime with this fact satisfies the constraint. Missing parts of a version are 0 here, and
    /// a prerelease or vendor suffix (`1.29.2-eks`) does not keep a version out of a range.
    pub fn accepts(&self, fact: &str) -> bool {
        match self {
            Self::Word(word) => word == fact,
            Self::Range(range) => {
                Version::parse_lenient(fact).is_ok_and(|version| range.matches(&version, true))
            }
        }
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Range(range) => fmt::Display::fmt(range, formatter),
            Self::Word(word) => formatter.pad(word),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_have_three_parts() {
        let capability = Capability::parse("compute.mu.com/v1/VM").expect("is one");
        assert_eq!(capability.parts(), ("compute.mu.com", "v1", "VM"));
        for wrong in ["compute/v1", "a/b/c/d", "", "a//c", "../a/b", "a/b/c.git"] {
            assert!(Capability::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn constraints_accept_facts() {
        let check = |constraint: &str, fact: &str, expected: bool| {
            let parsed = Constraint::parse(constraint).expect("is a constraint");
            assert_eq!(parsed.accepts(fact), expected, "{constraint} {fact}");
            assert_eq!(parsed.to_string(), constraint);
        };
        check(">=1.25", "1.29.2", true);
        check(">=1.25", "1.25", true);
        check(">=1.25", "v1.29.2-eks-1", true);
        check(">=1.25 <1.29", "1.29.2", false);
        check("1.29", "1.29.2", true);
        check("linux", "linux", true);
        check("linux", "windows", false);
        check(">=1.25", "linux", false);
        assert!(Constraint::parse(">=linux").is_err());
    }
}
