//! How a lock's `extra` writes the references of `mu get`: a reference, and its conditions on versions.

use crate::index::Requirement;
use crate::manifest;
use crate::ops::Session;
use crate::ops::requirements::id_from;
use crate::reference::{Defaults, PackageId, Reference, ReferenceError, VersionSpec};

/// What a dependency requires of the package `id`.
pub(crate) fn requirement(id: PackageId, dependency: &manifest::Requirement) -> Requirement {
    Requirement {
        prerelease: dependency.prerelease,
        channel: dependency.channel.clone(),
        app_version: dependency.app_version.clone(),
        ..Requirement::new(id, dependency.reference.spec())
    }
}

/// A reference of the command line with its conditions on versions, as in `extra` of a lock.
pub fn print_extra(dependency: &manifest::Requirement) -> String {
    let id = PackageId::new(&Defaults::default().base, dependency.reference.name());
    let narrowing = narrowing(requirement(id, dependency));
    let mark = if dependency.indirect { INDIRECT } else { "" };
    format!("{}{narrowing}{mark}", dependency.reference)
}

/// What narrows a requirement in addition to its version, in its own words.
pub(crate) fn narrowing(requirement: Requirement) -> String {
    let any = Requirement { spec: VersionSpec::Latest, ..requirement }.to_string();
    any.strip_prefix(&VersionSpec::Latest.to_string()).unwrap_or_default().to_owned()
}

/// The mark after an entry of a lock's `extra` that is an indirect dependency.
const INDIRECT: &str = " # indirect";

/// Reads an entry of a lock's `extra`.
///
/// # Errors
///
/// When it does not start with a reference.
pub fn parse_extra(text: &str) -> Result<manifest::Requirement, ReferenceError> {
    let (text, indirect) = match text.strip_suffix(INDIRECT) {
        Some(text) => (text, true),
        None => (text, false),
    };
    let words = [" of app version ", " in channel ", " with prereleases"];
    let end = words.iter().filter_map(|word| text.find(word)).min().unwrap_or(text.len());
    let reference = Reference::parse(&text[..end])?;
    let id = PackageId::new(&Defaults::default().base, reference.name());
    let latest = VersionSpec::Latest.to_string();
    let narrowed = Requirement::parse(id, &format!("{latest}{}", &text[end..]));
    let mut dependency =
        manifest::Requirement { indirect, ..manifest::Requirement::new(reference) };
    if let Some(narrowed) = narrowed {
        dependency.prerelease = narrowed.prerelease;
        dependency.channel = narrowed.channel;
        dependency.app_version = narrowed.app_version;
    }
    Ok(dependency)
}

/// The references of `extra` without those of `id`.
pub fn references_without(session: &Session, extra: &[String], id: &PackageId) -> Vec<String> {
    let from = session.lock_folder();
    extra
        .iter()
        .filter(|text| {
            parse_extra(text)
                .map_or(true, |dependency| id_from(session, &dependency.reference, from) != *id)
        })
        .cloned()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_keeps_what_narrows_a_reference() {
        for text in [
            "aws/vpc#^2",
            "aws/vpc",
            "aws/vpc#>=1 <2 in channel fast",
            "aws/vpc of app version 2.3 in channel stable with prereleases",
            "aws/vpc#>=1.2.0 # indirect",
        ] {
            let parsed = parse_extra(text).expect("is a reference");
            assert_eq!(print_extra(&parsed), text);
        }
        let parsed =
            parse_extra("aws/vpc#^2 in channel fast with prereleases").expect("is a reference");
        assert_eq!((parsed.channel.as_deref(), parsed.prerelease), (Some("fast"), true));
    }
}
