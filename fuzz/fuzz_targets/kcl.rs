//! Any text as `kcl.mod`: read, or refused with an error that points into it; what was read are references and versions that mu
//! reads, too, and what is removed from it is gone.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run kcl -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu::reference::{Reference, Version};
use mu_formats::{Reading, Texts, kcl, manifest};

fuzz_target!(|text: &str| {
    let module = format!("[package]\nname = \"a\"\nversion = \"0.1.0\"\n\n[dependencies]\n{text}");
    for text in [text, &module] {
        let format = kcl::FORMAT;
        let files = Texts([(format.manifest.to_owned(), text.to_owned())].into());
        for is_own in [false, true] {
            match (format.read)(
                &files,
                &Reading { is_own, is_folder: is_own, ..Reading::default() },
            ) {
                Ok(package) => {
                    let release = &package.release;
                    assert!(
                        release.version.is_empty()
                            || Version::parse_lenient(&release.version).is_ok()
                    );
                    for dependency in release.dependencies.iter().flatten() {
                        assert!(Reference::parse(dependency.reference()).is_ok(), "{dependency:?}");
                    }
                    let read = manifest(&package).expect("has a name");
                    assert_eq!(read.dependencies.len(), package.places.len());
                }
                Err(error) => {
                    assert!(text.get(error.span.clone()).is_some(), "{error:?}");
                    assert!(error.line > 0 && error.column > 0);
                    assert!(!error.reason.contains(char::is_control), "{error:?}");
                }
            }
        }
    }
});
