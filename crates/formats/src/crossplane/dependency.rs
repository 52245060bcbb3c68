//! Dependencies of a package in `crossplane.yaml`: each as a reference, and, for commands that change it, as it is written there:
//! line by line, so that comments and layout stay. What is written in brackets is left to its author.

use std::ops::Range;
use std::path::Path;

use mu_manifest::Requirement;
use mu_manifest::edit::{Change, Dialect, Placed};
use mu_manifest::reference::{Protocol, Reference, VersionSpec};
use mu_manifest::source::{New, SourceError, TextProblem};
use mu_provider::Dependency;

use super::FORMAT;
use crate::node::{Fault, Kind, Node};
use crate::range::{ranged, rewritten};
use crate::shape::Shape::{self, Map, Text, Unused};

/// The keys that can have a dependency's package; the key also says its kind.
pub(crate) const KEYS: [&str; 4] = ["package", "provider", "configuration", "function"];

/// What mu reads of a dependency.
pub(crate) const SHAPE: Shape = Map(&[
    ("package", Text),
    ("provider", Text),
    ("configuration", Text),
    ("function", Text),
    ("version", Text),
    // The kind of a `package`; mu reads it from the package itself.
    ("apiVersion", Unused),
    ("kind", Unused),
]);

/// The keys among them that say a kind.
pub(super) const KINDS: [&str; 3] = ["provider", "configuration", "function"];

/// The kind of package that a dependency is said to be, if its key says it.
pub(super) fn kind(node: &Node<'_>) -> Option<&'static str> {
    let kinds = KINDS.iter().zip(["Provider", "Configuration", "Function"]);
    let mut said = kinds.filter(|(key, _)| matches!(node.text(key), Ok(Some(_))));
    said.next().map(|(_, kind)| kind)
}

/// The dependencies of a document.
pub(super) fn list<'n, 't>(root: &'n Node<'t>) -> Result<&'n [Node<'t>], Fault> {
    match root.get("spec")? {
        Some(spec) => spec.list("dependsOn"),
        None => Ok(&[]),
    }
}

/// Reads a dependency; `is_own` says whether the package is where its author works on it.
pub(super) fn read(node: &Node<'_>, is_own: bool) -> Result<Dependency, Fault> {
    let Kind::Map(..) = &node.kind else {
        return Err(node.fault(
            "a dependency is a map with `provider`, `configuration`, `function` or `package`",
        ));
    };
    let mut found = None;
    for key in KEYS {
        if let Some(one) = node.text(key)? {
            found = Some(one);
        }
    }
    let (package, at) = found.ok_or_else(|| {
        node.fault("a dependency names no `provider`, `configuration`, `function` or `package`")
    })?;
    if let Some(reason) = pasted(package) {
        return Err(at.fault(reason));
    }
    let first = package.split('/').next().unwrap_or_default();
    let has_host = package.contains('/') && first.contains(['.', ':']);
    // Without a host, it is in the registry of whoever depends on it.
    let place = if has_host { format!("oci://{package}") } else { package.to_owned() };
    let (reference, prerelease) = match node.text("version")? {
        // To Crossplane, no text is no range.
        None if is_own => {
            return Err(at.fault(format!(
                "the dependency `{package}` has no `version`, and Crossplane installs none without: write `version: \"{ANY}\"` beside it for any"
            )));
        }
        None => (place, false),
        Some((text, _)) if text.starts_with("sha256:") => (format!("{place}#{text}"), false),
        Some((text, at)) => {
            let range = rewritten(text).map_err(|reason| {
                at.fault(format!("the range `{text}` of the dependency `{package}` {reason}"))
            })?;
            (format!("{place}#{}", range.text), range.prerelease)
        }
    };
    if let Err(error) = Reference::parse(&reference) {
        return Err(at.fault(format!("the dependency `{package}` has no valid reference: {error}")));
    }
    Ok(Dependency::new(reference, prerelease))
}

/// What to write in place of a name that was copied from elsewhere, with a protocol, a tag or a digest.
fn pasted(package: &str) -> Option<String> {
    if let Some((_, name)) = package.split_once("://") {
        return Some(format!("the dependency `{package}` begins with a protocol: write `{name}`"));
    }
    let leaf = package.rfind('/').map_or(0, |slash| slash + 1);
    let (name, version) = match package.split_once('@') {
        Some((name, digest)) => (name.split_at_checked(leaf)?, digest),
        None => {
            let (folder, rest) = package.split_at_checked(leaf)?;
            let (name, tag) = rest.split_once(':')?;
            ((folder, name), tag)
        }
    };
    // With both, the digest counts.
    let name = format!("{}{}", name.0, name.1.split(':').next().unwrap_or_default());
    Some(format!(
        "the dependency `{package}` has its version in its name: write `{name}`, and `version: \"{version}\"` beside it"
    ))
}

/// The dependencies of packages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packages;

/// What Crossplane takes for any version.
const ANY: &str = ">=v0.0.0";

impl Dialect for Packages {
    fn requirements(&self, path: &Path, text: &str) -> Result<Vec<Placed>, SourceError> {
        FORMAT.placed(path, text, None)
    }

    fn check(&self, _: &Path, _: &str, _: Option<&Requirement>) -> Result<(), TextProblem> {
        Ok(())
    }

    fn entry(&self, new: &Requirement) -> Result<(New, Requirement), TextProblem> {
        place(&new.reference)?;
        Ok((New::Text(self.version(new)?), self.read_as(new)))
    }

    fn version(&self, wanted: &Requirement) -> Result<String, TextProblem> {
        match wanted.reference.spec() {
            VersionSpec::Latest => ranged(ANY, wanted),
            VersionSpec::Range(range) => ranged(range.as_str(), wanted),
            spec @ (VersionSpec::Pin(_) | VersionSpec::Digest(_)) => Ok(spec.as_str().to_owned()),
            other => Err(TextProblem::new(format!(
                "`{other}` is not a version or a range that Crossplane reads"
            ))),
        }
    }

    fn read_as(&self, wanted: &Requirement) -> Requirement {
        let text = self.version(wanted).unwrap_or_default();
        let prerelease = rewritten(&text).is_ok_and(|range| range.prerelease);
        let spec = VersionSpec::parse(&text).ok();
        let reference = wanted.reference.with_version(spec);
        Requirement { reference, prerelease, alias: None, indirect: false, ..wanted.clone() }
    }

    fn is_list(&self) -> bool {
        false
    }

    fn is_described(&self) -> bool {
        true
    }

    fn comment_at(&self, text: &str, index: usize) -> Option<usize> {
        let (root, _) = super::described(text).ok()?;
        let entry = list(&root).ok()?.get(index)?;
        let lines = lines_of(text, entry).ok()?;
        let (_, version) = entry.text("version").ok()??;
        if !lines.contains(&version.span.start) {
            return None;
        }
        let rest = text.get(version.span.end..)?.lines().next().unwrap_or_default().trim_start();
        (rest.is_empty() || rest.starts_with('#')).then_some(version.span.end)
    }

    fn change(&self, text: &str, change: &Change<'_>) -> Option<Result<String, TextProblem>> {
        Some(self.changed(text, change))
    }
}

impl Packages {
    fn changed(&self, text: &str, change: &Change<'_>) -> Result<String, TextProblem> {
        let broken = || TextProblem::new("it is not YAML");
        let (root, _) = super::described(text).map_err(|_| broken())?;
        let entries = list(&root).map_err(|_| broken())?;
        let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
        match change {
            Change::Version(_) => Err(TextProblem::new(
                "this manifest has no version: the tag of the package in its registry is its version",
            )),
            Change::Add(new) => {
                let (key, place) = place(&new.reference)?;
                let version = self.version(new)?;
                let lines = [format!("- {key}: {place}"), format!("  version: {version:?}")];
                add(text, &root, entries, &lines, end)
            }
            Change::Set { index, wanted } => {
                let entry = entries.get(*index).ok_or_else(broken)?;
                let version = format!("{:?}", self.version(wanted)?);
                // A merge key brings a version from elsewhere, where others may use it.
                let is_own = |span: &Range<usize>| {
                    let lines = lines_of(text, entry);
                    lines
                        .map_or(span.start >= entry.span.start, |lines| lines.contains(&span.start))
                };
                let written = entry.text("version").ok().flatten();
                match written.filter(|(_, node)| is_own(&node.span)) {
                    Some((_, node)) => replaced(text, node.span.clone(), &version),
                    None => {
                        let lines = lines_of(text, entry)?;
                        let indent = indent_of(text, entry.span.start)?;
                        let line = format!("{}version: {version}{end}", " ".repeat(indent));
                        replaced(text, lines.end..lines.end, &line)
                    }
                }
            }
            Change::Describe { index, known } => {
                let entry = entries.get(*index).ok_or_else(broken)?;
                let kind = known.kind.as_ref().map(|kind| kind.to_ascii_lowercase());
                let kind = kind.filter(|kind| KINDS.contains(&kind.as_str()));
                let named = KINDS.iter().find_map(|key| {
                    let (_, value) = entry.text(key).ok()??;
                    let before = text.get(..value.span.start)?;
                    let at = before.rfind(&format!("{key}:"))?;
                    (at >= entry.span.start).then_some(at..at + key.len())
                });
                match (kind, named) {
                    (Some(kind), Some(place)) => replaced(text, place, &kind),
                    _ => Ok(text.to_owned()),
                }
            }
            Change::Remove { index } => {
                let entry = entries.get(*index).ok_or_else(broken)?;
                let lines = lines_of(text, entry)?;
                if entries.len() > 1 {
                    return replaced(text, lines, "");
                }
                // Nothing is left of the list, so its key goes, too.
                let key = key_line(text, "dependsOn", lines.start).ok_or_else(in_brackets)?;
                replaced(text, key.start..lines.end, "")
            }
        }
    }
}

/// The key that names a package's kind, by the beginning of its name until it is known, and where it is.
fn place(reference: &Reference) -> Result<(&'static str, String), TextProblem> {
    let refused = || {
        TextProblem::new(format!("a Crossplane package cannot depend on `{reference}`"))
            .help("packages depend on packages in OCI registries: `oci://HOST/REPOSITORY`")
    };
    let base = reference.base().ok_or_else(refused)?;
    if reference.protocol() != Some(&Protocol::Oci) {
        return Err(refused());
    }
    let name = reference.name();
    let kind = match name.leaf() {
        leaf if leaf.starts_with("function") => "function",
        leaf if leaf.starts_with("provider") => "provider",
        _ => "configuration",
    };
    Ok((kind, format!("{}/{name}", base.as_str().trim_end_matches('/'))))
}

/// Adds an entry behind the others, or a list for it.
fn add(
    text: &str,
    root: &Node<'_>,
    entries: &[Node<'_>],
    lines: &[String],
    end: &str,
) -> Result<String, TextProblem> {
    let written = |indent: usize| -> String {
        lines.iter().map(|line| format!("{}{line}{end}", " ".repeat(indent))).collect()
    };
    if let Some(last) = entries.last() {
        let place = lines_of(text, last)?;
        let dash = dash_of(text, place.start).ok_or_else(in_brackets)?;
        return replaced(
            text,
            place.end..place.end,
            &with_newline(text, place.end, &written(dash), end),
        );
    }
    let key = format!("dependsOn:{end}");
    let spec = root.get("spec").ok().flatten();
    if let Some(list) = spec.and_then(|spec| spec.get("dependsOn").ok().flatten()) {
        return filled(text, ("dependsOn", list), &|indent| written(indent + 2), end);
    }
    if let Some(spec) =
        spec.filter(|spec| text.get(spec.span.start..).unwrap_or_default().starts_with('{'))
    {
        return filled(text, ("spec", spec), &|_| format!("  {key}{}", written(4)), end);
    }
    // A key without a value is no list yet.
    let bare = key_line(text, "dependsOn", text.len()).filter(|_| spec.is_some());
    if let Some(line) = bare
        && let Some(head) = text.get(line.clone()).filter(|line| line.trim() == "dependsOn:")
    {
        let indent = head.len() - head.trim_start().len();
        let new = with_newline(text, line.end, &written(indent + 2), end);
        return replaced(text, line.end..line.end, &new);
    }
    // After the line of `spec`, or at the end of the document.
    match key_line(text, "spec", text.len()) {
        Some(line) if text.get(line.clone()).is_some_and(|line| line.trim_end() == "spec:") => {
            replaced(
                text,
                line.end..line.end,
                &with_newline(text, line.end, &format!("  {key}{}", written(4)), end),
            )
        }
        Some(_) => Err(in_brackets()),
        None => {
            let at = text.find("\n---").map_or(text.len(), |at| at + 1);
            let new = format!("spec:{end}  {key}{}", written(4));
            replaced(text, at..at, &with_newline(text, at, &new, end))
        }
    }
}

/// Puts lines behind a key whose value is empty brackets, which go; `new` makes them for the indentation of the key.
fn filled(
    text: &str,
    (key, value): (&str, &Node<'_>),
    new: &dyn Fn(usize) -> String,
    end: &str,
) -> Result<String, TextProblem> {
    let before = text.get(..value.span.start).ok_or_else(in_brackets)?;
    let rest = text.get(value.span.start..).ok_or_else(in_brackets)?;
    let inside = rest.strip_prefix(['[', '{']).map(str::trim_start);
    let after =
        inside.and_then(|inside| inside.strip_prefix([']', '}'])).ok_or_else(in_brackets)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let head = before.get(start..).unwrap_or_default().trim_end();
    let tail = after.split_inclusive('\n').next().unwrap_or_default();
    let is_alone = tail.trim().is_empty() || tail.trim_start().starts_with('#');
    if head.trim_start().strip_suffix(':') != Some(key) || !is_alone {
        return Err(in_brackets());
    }
    let line = format!("{head}{tail}");
    let new = with_newline(&line, line.len(), &new(head.len() - head.trim_start().len()), end);
    let place = start..text.len() - after.len() + tail.len();
    replaced(text, place, &format!("{line}{new}"))
}

/// What is put at a place, on a line of its own.
fn with_newline(text: &str, at: usize, new: &str, end: &str) -> String {
    let before = text.get(..at).unwrap_or_default();
    match before.is_empty() || before.ends_with('\n') {
        true => new.to_owned(),
        false => format!("{end}{new}"),
    }
}

fn replaced(text: &str, place: Range<usize>, new: &str) -> Result<String, TextProblem> {
    let before = text.get(..place.start).ok_or_else(in_brackets)?;
    let after = text.get(place.end..).ok_or_else(in_brackets)?;
    Ok(format!("{before}{new}{after}"))
}

fn in_brackets() -> TextProblem {
    TextProblem::new("its dependencies are laid out in a way that mu does not change")
        .help("write each entry of `dependsOn` on lines of its own, behind a `-`")
}

/// The lines of an entry: from its dash to the last one before something that is not indented deeper.
fn lines_of(text: &str, entry: &Node<'_>) -> Result<Range<usize>, TextProblem> {
    let before = text.get(..entry.span.start).ok_or_else(in_brackets)?;
    let start = before.rfind('\n').map_or(0, |at| at + 1);
    let dash = dash_of(text, start).ok_or_else(in_brackets)?;
    let mut end = start;
    for (number, line) in text.get(start..).unwrap_or_default().split_inclusive('\n').enumerate() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        if number > 0 && (line.trim().is_empty() || indent <= dash) {
            break;
        }
        end += line.len();
    }
    Ok(start..end)
}

/// The column of the dash in a line.
fn dash_of(text: &str, start: usize) -> Option<usize> {
    let line = text.get(start..)?.lines().next()?;
    let dash = line.trim_start_matches(' ');
    (dash.starts_with("- ") && !dash.contains('{')).then(|| line.len() - dash.len())
}

/// The column of a place in its line.
fn indent_of(text: &str, at: usize) -> Result<usize, TextProblem> {
    let before = text.get(..at).ok_or_else(in_brackets)?;
    Ok(at - before.rfind('\n').map_or(0, |at| at + 1))
}

/// The last line before a place that is the key.
fn key_line(text: &str, key: &str, before: usize) -> Option<Range<usize>> {
    let mut found = None;
    let mut start = 0;
    for line in text.get(..before)?.split_inclusive('\n') {
        let is_it = line.trim_start().strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
        if is_it {
            found = Some(start..start + line.len());
        }
        start += line.len();
    }
    found
}
