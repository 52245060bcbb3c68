//! `Chart.lock`, with which Helm checks whether `charts/` contains a chart's dependencies.
//!
//! Its digest covers the JSON of the dependencies in the chart and of the locked ones, exactly as Go prints
//! it (`HashReq` in Helm's `internal/resolver`).

use std::borrow::Cow;
use std::fmt::Write as _;

use mu_manifest::Requirement;
use mu_manifest::reference::{Range, Reference, Version};
use mu_provider::{ArchiveDigest, Dependency, Release};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::{CHART, REQUIREMENTS, chart};
use crate::format::{Reading, Seen, Texts};
use crate::node::{Fault, FormatError, Kind, Node};
use crate::range::rewritten;
use crate::reader;
use crate::shape::Shape::{self, All, Folded, List, Text, Unused};
use crate::shape::TEXTS;
use crate::user_files::HelmRepositoryAliases;

/// What the lock is made of. Its digest is over all that a dependency says.
static SHAPE: Shape = Folded(&[
    ("apiVersion", Text),
    ("name", Text),
    ("version", Text),
    (
        "dependencies",
        List(&Folded(&[
            ("name", Text),
            ("version", Text),
            ("repository", Text),
            ("condition", Text),
            ("tags", TEXTS),
            ("enabled", Text),
            ("import-values", All),
            ("alias", Text),
        ])),
    ),
]);

/// What is read of a lock.
static LOCK: Shape = Folded(&[
    ("digest", Text),
    ("dependencies", List(&Folded(&[("name", Text), ("version", Text), ("repository", Text)]))),
    ("generated", Unused),
]);

/// The dependencies of a chart, as Helm locks them.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// In the order of the manifest; a dependency with several aliases is there several times.
    pub needs: Vec<Need>,
    /// The name of the lock: `Chart.lock`, or `requirements.lock` of a chart of the first format.
    pub lock: &'static str,
}

/// One dependency of a chart, as Helm locks it.
#[derive(Debug, Clone)]
pub struct Need {
    /// The name of the chart.
    pub name: String,
    /// The range, as it is written; empty without one.
    pub version: String,
    /// The chart's repository, with a short name replaced by its URL; empty for a chart inside.
    pub repository: String,
    /// What mu requires for it; `None` for a chart that lies inside.
    pub requirement: Option<Requirement>,
    /// The dependency as Go prints it.
    json: String,
}

impl Need {
    /// A version of the chart as Helm has it in its lock: of the exact one in an OCI registry that the dependency asks for, the tag.
    pub fn version_for_helm(&self, version: String) -> String {
        let is_in_registry = self.repository.starts_with("oci://");
        match is_in_registry && self.version.strip_prefix('v') == Some(version.as_str()) {
            true => self.version.clone(),
            false => version,
        }
    }

    /// Whether this version of the chart is what the dependency asks for.
    pub fn has_in_range(&self, version: &str) -> bool {
        let (Ok(range), Ok(version)) = (rewritten(&self.version), Version::parse_lenient(version))
        else {
            return true;
        };
        Range::parse(&range.text).is_ok_and(|read| read.matches(&version, range.prerelease))
    }
}

/// Reads the dependencies of the chart with these files; `is_own` says whether its author works on it there.
///
/// # Errors
///
/// As [`super::read`].
pub fn needs(
    files: &Texts,
    aliases: &HelmRepositoryAliases,
    is_own: bool,
) -> Result<Needs, FormatError> {
    let text = files.manifest(CHART)?;
    let in_chart = |fault| FormatError::new(CHART, text, fault);
    let root = reader::read(text, &SHAPE).map_err(in_chart)?;
    chart::head(&root, None).map_err(in_chart)?;
    let lock = if chart::is_first(&root) { "requirements.lock" } else { "Chart.lock" };
    let around = Reading { is_own, aliases: Some(aliases), ..Reading::default() };
    let (file, text, root) = listing(files, text, root)?;
    let read = || -> Result<Vec<Need>, Fault> {
        let nodes = root.list("dependencies")?.iter();
        nodes.map(|node| need(text, node, &around)).collect()
    };
    let needs = read().map_err(|fault| FormatError::new(file, text, fault))?;
    Ok(Needs { needs, lock })
}

/// The file that lists the dependencies of a chart: its name, its text and what it says. `root` is what `text`, that of its
/// `Chart.yaml`, says.
fn listing<'t>(
    files: &'t Texts,
    text: &'t str,
    root: Node<'t>,
) -> Result<(&'static str, &'t str, Node<'t>), FormatError> {
    if let Some(text) = files.text(REQUIREMENTS) {
        let in_file = |fault| FormatError::new(REQUIREMENTS, text, fault);
        let root = reader::read(text, &SHAPE).map_err(in_file)?;
        if root.written("dependencies").is_some() {
            return Ok((REQUIREMENTS, text, root));
        }
    }
    Ok((CHART, text, root))
}

fn need(text: &str, node: &Node<'_>, around: &Reading<'_>) -> Result<Need, Fault> {
    let mut release = Release::default();
    chart::add(&mut release, node, around, &mut Seen::default())?;
    let required = release.dependencies.iter().flatten().next();
    let requirement = required.and_then(|required| {
        let mut requirement = Requirement::new(Reference::parse(required.reference()).ok()?);
        requirement.prerelease =
            matches!(required, Dependency::Detailed(detailed) if detailed.prerelease);
        Some(requirement)
    });
    let word = |key: &str| -> Result<String, Fault> {
        Ok(match node.get(key)?.map(|node| &node.kind) {
            Some(Kind::Scalar(text)) => text.clone().into_owned(),
            _ => String::new(),
        })
    };
    let [name, version, condition, alias] =
        [word("name")?, word("version")?, word("condition")?, word("alias")?];
    let written = word("repository")?;
    let named = written.strip_prefix('@').or_else(|| written.strip_prefix("alias:"));
    let url = named.and_then(|alias| around.aliases?.repository_url(alias, &name));
    let repository = url.map_or(written.clone(), Cow::into_owned);
    // The digest in a Chart.lock is that of the dependencies as Go's encoder prints them: the fields of Helm's struct in their order,
    // without those that are empty.
    let mut json = "{".to_owned();
    let mut field = |key: &str, value: &dyn Fn(&mut String)| {
        json.push_str(if json.len() > 1 { ",\"" } else { "\"" });
        json.push_str(key);
        json.push_str("\":");
        value(&mut json);
    };
    field("name", &|json| print(json, &name));
    if !version.is_empty() {
        field("version", &|json| print(json, &version));
    }
    field("repository", &|json| print(json, &repository));
    if !condition.is_empty() {
        field("condition", &|json| print(json, &condition));
    }
    let tags = node.list("tags")?;
    if !tags.is_empty() {
        field("tags", &|json| {
            list(json, tags, |json, tag| match &tag.kind {
                Kind::Scalar(text) => print(json, text),
                _ => json.push_str("\"\""),
            });
        });
    }
    if node.flag("enabled")? {
        field("enabled", &|json| json.push_str("true"));
    }
    let values = node.list("import-values")?;
    if !values.is_empty() {
        field("import-values", &|json| list(json, values, |json, node| any(json, text, node)));
    }
    if !alias.is_empty() {
        field("alias", &|json| print(json, &alias));
    }
    json.push('}');
    Ok(Need { name, version, repository, requirement, json })
}

/// The names of the charts that the chart with these files needs, wherever they come from.
///
/// # Errors
///
/// When one of them cannot be read.
pub fn dependencies(files: &Texts) -> Result<Vec<String>, FormatError> {
    let text = files.text(CHART).unwrap_or_default();
    let in_chart = |fault| FormatError::new(CHART, text, fault);
    let root = reader::read(text, &SHAPE).map_err(in_chart)?;
    let (file, text, root) = listing(files, text, root)?;
    let in_file = |fault| FormatError::new(file, text, fault);
    let mut names = Vec::new();
    for node in root.list("dependencies").map_err(in_file)?.iter().filter(|node| node.is_map()) {
        names.extend(node.text("name").map_err(in_file)?.map(|(name, _)| name.to_owned()));
    }
    Ok(names)
}

/// Names and versions in `text`, that of the lock `file`.
///
/// # Errors
///
/// When it is not YAML, or has keys that no lock has.
pub fn locked(file: &str, text: &str) -> Result<Vec<(String, String)>, FormatError> {
    let read = || -> Result<_, Fault> {
        let (root, unknown) = reader::read_all(text, &LOCK)?;
        unknown.check(true)?;
        if !root.is_map() && !matches!(root.kind, Kind::Null) {
            return Err(root.fault("this is not a lock: it has no keys"));
        }
        let pair = |node: &Node<'_>| {
            Some((node.text_for_people("name")?, node.text_for_people("version")?))
        };
        Ok(root.list("dependencies")?.iter().filter_map(pair).collect())
    };
    read().map_err(|fault| FormatError::new(file, text, fault))
}

/// The text of the lock for `needs`, with one of `versions` for each. `previous` is kept if it says the same.
pub fn lock(needs: &[Need], versions: &[&str], previous: Option<&str>, now: &str) -> String {
    let digest = digest(needs, versions);
    // A merge can leave a digest with entries that are not the ones it is for.
    let says_so = |text: &&str| {
        reader::read(text, &LOCK).is_ok_and(|root| {
            let entries = root.list("dependencies").unwrap_or_default();
            let is_for = |node: &Node<'_>, need: &Need, version: &str| {
                let said = |key| node.text(key).ok().flatten().map_or("", |(text, _)| text);
                said("name") == need.name
                    && said("repository") == need.repository
                    && said("version") == version
            };
            let pairs = needs.iter().zip(versions);
            matches!(root.text("digest"), Ok(Some((known, _))) if known == digest)
                && entries.len() == needs.len()
                && entries
                    .iter()
                    .zip(pairs)
                    .all(|(node, (need, version))| is_for(node, need, version))
        })
    };
    if let Some(text) = previous.filter(says_so) {
        return text.to_owned();
    }
    let mut text = "dependencies:\n".to_owned();
    for (need, version) in needs.iter().zip(versions) {
        let [name, repository, version] = [&need.name, &need.repository, *version].map(scalar);
        // Writing to a text cannot fail.
        let _ = write!(text, "- name: {name}\n  repository: {repository}\n  version: {version}\n");
    }
    let _ = write!(text, "digest: {digest}\ngenerated: {now:?}\n");
    text
}

fn digest(needs: &[Need], versions: &[&str]) -> String {
    let asked: Vec<&str> = needs.iter().map(|need| need.json.as_str()).collect();
    let mut json = format!("[[{}],[", asked.join(","));
    for (number, (need, version)) in needs.iter().zip(versions).enumerate() {
        json.push_str(if number == 0 { "{\"name\":" } else { ",{\"name\":" });
        print(&mut json, &need.name);
        if !version.is_empty() {
            json.push_str(",\"version\":");
            print(&mut json, version);
        }
        json.push_str(",\"repository\":");
        print(&mut json, &need.repository);
        json.push('}');
    }
    json.push_str("]]");
    ArchiveDigest::from_bytes(Sha256::digest(json).into()).to_string()
}

/// A word in YAML, in quotes if it could be read as anything but text.
fn scalar(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._+-/:~".contains(&byte);
    let is_word = text.bytes().all(is_plain)
        && text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric())
        && !text.ends_with(':')
        && text.parse::<f64>().is_err()
        && !matches!(
            &*text.to_ascii_lowercase(),
            "true" | "false" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    match is_word {
        true => text.to_owned(),
        false => {
            let mut quoted = String::new();
            print(&mut quoted, text);
            quoted
        }
    }
}

/// A text as Go prints it in JSON.
fn print(json: &mut String, text: &str) {
    let mut printed = Value::from(text).to_string();
    for letter in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
        printed = printed.replace(letter, &format!("\\u{:04x}", u32::from(letter)));
    }
    json.push_str(&printed);
}

fn list<'n, 't: 'n>(
    json: &mut String,
    nodes: &'n [Node<'t>],
    one: impl Fn(&mut String, &'n Node<'t>),
) {
    json.push('[');
    for (number, node) in nodes.iter().enumerate() {
        if number > 0 {
            json.push(',');
        }
        one(json, node);
    }
    json.push(']');
}

/// Any value of `text`, read with [`All`], as Go prints it.
pub(super) fn json(text: &str, node: &Node<'_>) -> String {
    let mut json = String::new();
    any(&mut json, text, node);
    json
}

/// Any value as Go prints it after reading it from YAML; maps are sorted by their keys.
fn any(json: &mut String, text: &str, node: &Node<'_>) {
    match &node.kind {
        Kind::Null => json.push_str("null"),
        Kind::List(items) => list(json, items, |json, node| any(json, text, node)),
        Kind::Map(entries, _) => {
            let mut entries: Vec<_> = entries.iter().collect();
            entries.sort_by(|left, right| left.key.as_bytes().cmp(right.key.as_bytes()));
            json.push('{');
            for (number, entry) in entries.into_iter().enumerate() {
                if number > 0 {
                    json.push(',');
                }
                print(json, &entry.key);
                json.push(':');
                any(json, text, &entry.value);
            }
            json.push('}');
        }
        Kind::Scalar(value) => {
            let written = text.as_bytes().get(node.span.start);
            let is_plain = written.is_none_or(|byte| !b"'\"|>".contains(byte));
            match (&**value, value.parse::<f64>()) {
                ("true" | "True" | "TRUE", _) if is_plain => json.push_str("true"),
                ("false" | "False" | "FALSE", _) if is_plain => json.push_str("false"),
                (value, Ok(number))
                    if is_plain && value.ends_with(|c: char| c.is_ascii_digit()) =>
                {
                    print_number(json, number);
                }
                (value, _) => print(json, value),
            }
        }
    }
}

/// A number as Go prints it: with an exponent if it is very large or very small.
fn print_number(json: &mut String, number: f64) {
    let size = number.abs();
    let _ = match size != 0.0 && !(1e-6..1e21).contains(&size) {
        false => write!(json, "{number}"),
        true => {
            let text = format!("{number:e}");
            match text.contains("e-") {
                true => write!(json, "{text}"),
                false => write!(json, "{}", text.replace('e', "e+")),
            }
        }
    };
}

/// What is read of a lock.
#[cfg(test)]
pub(super) fn shape() -> &'static Shape {
    &LOCK
}

#[cfg(test)]
mod tests;
