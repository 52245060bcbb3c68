//! Lines of an index: those that pass the check are lines about the package, pass it again unchanged,
//! and a release that was read prints as one that reads the same.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run index_line -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu_provider::{Release, SafeUrl};
use mu_provider_hub::index::check;

fuzz_target!(|bytes: &[u8]| {
    let url = SafeUrl::parse("https://hub.example/index/a.jsonl").expect("is a URL");
    let checked = check(bytes.to_vec(), "a", &url);
    if let Ok(lines) = &checked {
        assert_eq!(check(lines.clone(), "a", &url).ok().as_ref(), Some(lines));
    }
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(release) = serde_json::from_slice::<Release>(line) else { continue };
        let printed = serde_json::to_string(&release).expect("was read");
        let again: Release = serde_json::from_str(&printed).expect("was printed");
        assert_eq!(again, normal(release));
    }
});

/// Defaults are not printed, and are read as defaults.
fn normal(release: Release) -> Release {
    let yanked = if release.yanked.is_no() { Default::default() } else { release.yanked };
    Release { yanked, ..release }
}
