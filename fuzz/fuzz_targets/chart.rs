//! Any text as `Chart.yaml`, `requirements.yaml`, `operator.yaml` and `index.yaml`: read, or refused with an error that points into it; and what
//! was read are references, versions and ranges that mu reads, too.
//!
//! Run with `RUSTC_BOOTSTRAP=1 cargo fuzz run chart -- -max_total_time=60`.

#![no_main]

use libfuzzer_sys::fuzz_target;
use mu::reference::{Range, Reference, Version};
use mu_formats::helm::{CHART, HelmRepositoryAliases, REQUIREMENTS, index, is_index, read};
use mu_formats::{FormatError, Index, Reading, Texts, kudo, manifest, rewritten};
use mu_provider::Release;

fuzz_target!(|text: &str| {
    let aliases = HelmRepositoryAliases::read(text);
    for is_own in [false, true] {
        let around =
            Reading { is_own, is_folder: is_own, aliases: Some(&aliases), ..Reading::default() };
        let chart = format!("name: a\nversion: 1.0.0\n{text}");
        for (chart, requirements) in
            [(text, text), (&chart, ""), ("name: a\nversion: 1.0.0\n", text)]
        {
            let files = [(CHART, chart), (REQUIREMENTS, requirements)];
            let files = Texts(files.map(|(name, text)| (name.to_owned(), text.to_owned())).into());
            match read(&files, &around) {
                Ok(package) => {
                    check_release(&package.release);
                    let read = manifest(&package).expect("has a name");
                    assert_eq!(read.dependencies.len(), package.places.len());
                }
                Err(error) => check_error(&files.0[&error.file], &error),
            }
        }
    }
    match index("index.yaml", text, &aliases) {
        Ok(index) => check_index(text, &index),
        Err(error) => check_error(text, &error),
    }
    match kudo::index("index.yaml", text) {
        Ok(index) => check_index(text, &index),
        Err(error) => check_error(text, &error),
    }
    let head = "apiVersion: kudo.dev/v1beta1\nname: a\noperatorVersion: 1.0.0\n";
    for (text, is_own) in [(text, true), (&format!("{head}{text}"), false)] {
        let files = Texts([(kudo::OPERATOR.to_owned(), text.to_owned())].into());
        match kudo::read(&files, &Reading { is_own, is_folder: is_own, ..Reading::default() }) {
            Ok(package) => {
                assert!(kudo::is_operator(text));
                check_release(&package.release);
                let read = manifest(&package).expect("has a name");
                assert_eq!(read.dependencies.len(), package.places.len());
                assert!(read.version.is_some());
            }
            Err(error) => check_error(text, &error),
        }
    }
    if let Ok(range) = rewritten(text) {
        assert!(Range::parse(&range.text).is_ok());
    }
});

fn check_index(text: &str, index: &Index) {
    assert!(is_index(text));
    for lines in index.packages.values() {
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            check_release(&serde_json::from_slice(line).expect("is a line"));
        }
    }
}

fn check_error(text: &str, error: &FormatError) {
    assert!(text.get(error.span.clone()).is_some(), "{error:?}");
    assert!(error.line > 0 && error.column > 0);
    assert!(!error.reason.contains(char::is_control), "{error:?}");
}

fn check_release(release: &Release) {
    if release.unusable.is_none() {
        assert!(Version::parse_lenient(&release.version).is_ok());
        assert!(Reference::parse(&release.name).is_ok());
    }
    for dependency in release.dependencies.iter().flatten() {
        assert!(Reference::parse(dependency.reference()).is_ok(), "{dependency:?}");
    }
}
