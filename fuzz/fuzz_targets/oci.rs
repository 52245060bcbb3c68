//! Any bytes as what a registry answers: a manifest, of mu or of another ecosystem, an index, a list of tags, an event, a layer.
//! Nothing panics, what is taken for a version is one, and what is listed reads as it was printed.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run oci -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_archive::pick;
use mu_provider::{ArchiveDigest, Release};
use mu_provider_oci::listing::{Entries, event_tag};
use mu_provider_oci::{marked, read, wire};

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    for tag in ["1.0.0", "v1.0.0", "edge"] {
        match read(bytes, tag) {
            Ok(release) => {
                let archive = release.archive.as_deref().expect("has an archive");
                assert!(archive.parse::<ArchiveDigest>().is_ok());
                let version = release.full_version();
                assert!(wire::version_of(tag).is_none_or(|tagged| tagged == version));
            }
            Err(reason) => assert!(!reason.contains(char::is_control), "{reason:?}"),
        }
    }
    if let Ok(manifest) = serde_json::from_slice::<wire::ImageManifest>(bytes)
        && let Some((format, artifact, layer)) = marked(&manifest)
    {
        assert_eq!(format.artifact.map(|known| known.in_folder), Some(artifact.in_folder));
        match layer {
            Ok(at) => assert!(at < manifest.layers.len()),
            Err(reason) => assert!(!reason.contains(char::is_control), "{reason:?}"),
        }
    }
    const MOST: u64 = 1 << 20;
    if let Ok(files) = pick(bytes, &|path| path.ends_with(".yaml"), MOST) {
        assert!(files.keys().all(|path| path.ends_with(".yaml")));
        assert!(files.values().map(|content| content.len() as u64).sum::<u64>() <= MOST);
    }
    let mut tags: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    tags.extend(["1.0.0", "1.0.0_b", "v2.0.0"].map(str::to_owned));
    for tag in &tags {
        if let Some(version) = wire::version_of(tag) {
            let again = wire::tag_of(&version);
            assert!(tag.ends_with(&again) && tag.len() - again.len() <= 1, "{tag}");
            assert!(wire::is_tag(tag));
        }
        let _ = wire::is_repository(tag);
        let _ = event_tag(tag);
    }
    let mut entries = Entries::default();
    if let Some(index) = wire::Index::parse(bytes) {
        entries.add(&index);
        assert!(wire::Index::parse(&index.to_bytes()).is_some());
    }
    let listed = entries.releases("acme/web", &tags);
    let versions = tags.iter().filter(|tag| wire::version_of(tag).is_some()).count();
    assert!((2..=versions).contains(&listed.len()));
    for release in listed {
        assert!(release.archive.is_none() && release.commit.is_none() && release.urls.is_empty());
        let printed = serde_json::to_string(&release).expect("is text and numbers");
        assert!(serde_json::from_str::<Release>(&printed).is_ok(), "{printed}");
    }
});
