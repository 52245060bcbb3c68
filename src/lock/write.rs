//! Printing a lock: sorted, one field a line, the same bytes for the same selection.

use std::collections::HashMap;
use std::sync::Arc;

use crate::lock::{FORMAT, LockedPackage, Lockfile, ReplacedPackage, Requested, Source};
use crate::reference::{Base, PackageId};

const HEADER: &str = "\
# Written by mu; do not edit. It holds the version, source and content of every package that this
# workspace uses, so that `mu get` gives everyone the same. Commit it.
";

/// The text of a lock.
pub(super) fn print(lock: &Lockfile) -> String {
    let mut text = String::from(HEADER);
    field(&mut text, "", "version", &FORMAT.to_string());
    field(&mut text, "", "resolution", &scalar(&lock.resolution));
    if lock.packages.is_empty() && lock.replaced.is_empty() {
        text.push_str("packages: []\n");
    } else {
        text.push_str("packages:\n");
    }
    let names = Names::of(lock);
    let mut replaced = lock.replaced.iter().peekable();
    for package in &lock.packages {
        while let Some(before) = replaced.next_if(|replaced| replaced.id < package.id) {
            print_replaced(&mut text, lock, before, &names);
        }
        print_package(&mut text, package, &names);
    }
    for last in replaced {
        print_replaced(&mut text, lock, last, &names);
    }
    list(&mut text, "", "extra", lock.extra.iter().cloned());
    text
}

/// What packages are called in the file: by their id, or, if that is a folder, by their source, which does not depend on
/// where the workspace is on this machine. A folder that is used instead of a package keeps the package's id.
struct Names<'lock>(HashMap<&'lock str, String>);

impl<'lock> Names<'lock> {
    fn of(lock: &'lock Lockfile) -> Self {
        let is_folder = |package: &&LockedPackage| {
            package.source.is_folder() && package.id.base() == Base::localhost()
        };
        let folders = lock.packages.iter().filter(is_folder);
        Self(folders.map(|package| (package.id.as_str(), package.source.to_string())).collect())
    }

    fn name(&self, id: &PackageId) -> String {
        self.by(id.as_str())
    }

    fn by(&self, text: &str) -> String {
        self.0.get(text).cloned().unwrap_or_else(|| text.to_owned())
    }
}

fn print_package(text: &mut String, package: &LockedPackage, names: &Names<'_>) {
    field(text, "- ", "id", &scalar(&names.name(&package.id)));
    field(text, "  ", "version", &scalar(&package.version));
    if package.is_composite {
        field(text, "  ", "versioning", "composite");
    }
    if let Some(app_version) = &package.app_version {
        field(text, "  ", "appVersion", &scalar(app_version));
    }
    field(text, "  ", "source", &scalar(&package.source.to_string()));
    let optional = [
        ("folder", package.folder.clone()),
        ("commit", package.commit.clone()),
        ("ref", package.reference.clone()),
        ("digest", package.digest.map(|digest| digest.to_string())),
        ("archive", package.archive.map(|digest| digest.to_string())),
        ("url", package.url.clone()),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            field(text, "  ", key, &scalar(&value));
        }
    }
    list(
        text,
        "  ",
        "requested",
        package.requested.iter().map(|requested| {
            let by = names.by(&requested.by).into();
            Requested { by, spec: Arc::clone(&requested.spec) }.to_string()
        }),
    );
    list(text, "  ", "dependencies", package.dependencies.iter().map(|id| names.name(id)));
    list(text, "  ", "provides", package.provides.iter().cloned());
    list(text, "  ", "requires", package.requires.iter().cloned());
    list(text, "  ", "replaces", package.replaces.iter().map(|id| names.name(id)));
}

/// Prints what was locked of a replaced package; of one that never was, what replaces it has version and source.
fn print_replaced(
    text: &mut String,
    lock: &Lockfile,
    replaced: &ReplacedPackage,
    names: &Names<'_>,
) {
    let mut package = match &replaced.kept {
        Some(kept) => (**kept).clone(),
        None => {
            let by = lock.find(&replaced.by).last();
            let version = by.map_or_else(|| "0.0.0".to_owned(), |by| by.version.clone());
            let nowhere = || Source::new(Source::WORKSPACE, ".");
            let source = by.map_or_else(nowhere, |by| by.source.clone());
            let is_composite = by.is_some_and(|by| by.is_composite);
            let id = replaced.id.clone();
            LockedPackage { is_composite, ..LockedPackage::new(id, version, source) }
        }
    };
    package.requested.clone_from(&replaced.requested);
    print_package(text, &package, names);
    field(text, "  ", "replacedBy", &scalar(&names.name(&replaced.by)));
}

fn field(text: &mut String, indent: &str, key: &str, value: &str) {
    text.push_str(indent);
    text.push_str(key);
    text.push_str(": ");
    text.push_str(value);
    text.push('\n');
}

fn list(text: &mut String, indent: &str, key: &str, items: impl Iterator<Item = String>) {
    let items: Vec<String> = items.map(|item| scalar(&item)).collect();
    if !items.is_empty() {
        field(text, indent, key, &format!("[{}]", items.join(", ")));
    }
}

/// A YAML scalar: plain where every YAML reader takes it for this very string, else double-quoted.
fn scalar(value: &str) -> String {
    let safe =
        |character: char| character.is_ascii_alphanumeric() || "/.+-_:#^~@".contains(character);
    // A leading letter and a slash or two digits' dots keep it from being a number, date or word.
    let plain = value.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '.')
        && value.chars().all(safe)
        && !value.ends_with(':')
        && (value.contains('/') || value.starts_with("workspace+") || is_version_or_digest(value));
    if plain {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            _ if character.is_control()
                || matches!(character, '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{feff}') =>
            {
                quoted.push_str(&format!("\\U{:08X}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn is_version_or_digest(value: &str) -> bool {
    value.starts_with("h1:")
        || value.starts_with("sha256:")
        || matches!(value, "highest" | "minimal")
        || (value.matches('.').count() >= 2
            && value.starts_with(|first: char| first.is_ascii_digit()))
        || (value.len() == 40 && value.contains(|c: char| c.is_ascii_lowercase() && c != 'e'))
}
