//! The formats against what providers look for; and, each in its file, against the keys that the tools of each format have.

mod keys;
mod made_files;

use crate::FORMATS;

#[test]
fn providers_look_for_the_manifests_of_all_formats() {
    let (plain, marked) = FORMATS.split_at(mu_provider::FOREIGN_MANIFESTS.len());
    let known = plain.iter().map(|format| (format.manifest, format.others.first().copied()));
    assert!(known.eq(mu_provider::FOREIGN_MANIFESTS));
    assert!(plain.iter().all(|format| format.folder.is_none()));
    let known = marked.iter().map(|format| (format.manifest, format.others, format.folder));
    let there = mu_provider::MARKED_MANIFESTS;
    assert!(known.eq(there.map(|marked| (marked.name, marked.others, marked.folder))));
}
