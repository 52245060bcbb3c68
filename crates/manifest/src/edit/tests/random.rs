//! Random manifests like those that people write: no change loses a comment.

use std::path::Path;

use proptest::prelude::*;

use super::{editor, path_of, requirement};
use crate::edit::Section;
use crate::source::Document;
use crate::{Manifest, Requirement};

/// Manifests like those that people write: comments and empty lines anywhere, any quotes, either line ending.
fn manifest() -> impl Strategy<Value = String> {
    let noise = || {
        prop::sample::select(vec!["", "", "\n", "# note\n", "  # deep - note\n", "\n# a: [b]\n"])
    };
    let behind = || {
        prop::sample::select(vec![
            "",
            "",
            " # why",
            "   # x: y, z",
            " # indirect",
            " # indirect; c",
        ])
    };
    let quote = || prop::sample::select(vec!["", "'", "\""]);
    let version = || prop::sample::select(vec!["", "#^1.0", "#~2", "#>=1 <2", "#beta"]);
    let entry = (noise(), quote(), version(), behind());
    let shape = prop::sample::select(vec!["list", "flat list", "map", "flow", "lines in brackets"]);
    let parts = (
        noise(),
        behind(),
        shape,
        prop::collection::vec(entry, 0..5),
        noise(),
        any::<bool>(),
        any::<bool>(),
    );
    parts.prop_map(|(head, behind, shape, entries, tail, windows, newline)| {
        let mut text = format!("{head}name: a{behind}\n{head}dependencies:");
        let in_brackets = matches!(shape, "flow" | "lines in brackets");
        let map = shape == "map";
        if in_brackets {
            text.push_str(" [");
        }
        for (index, (noise, quote, version, behind)) in entries.iter().enumerate() {
            let comma = if index + 1 == entries.len() { "" } else { "," };
            let entry = format!("{quote}p{index}{version}{quote}");
            match shape {
                "list" => text.push_str(&format!("{behind}\n{noise}  - {entry}")),
                "flat list" => text.push_str(&format!("{behind}\n{noise}- {entry}")),
                "map" => {
                    text.push_str(&format!("{behind}\n{noise}  p{index}: {quote}^1.{index}{quote}"))
                }
                "flow" => text.push_str(&format!("{entry}{comma} ")),
                _ => text.push_str(&format!("\n{noise}   {entry}{comma}{behind}")),
            }
        }
        if in_brackets {
            text.push_str(if shape == "flow" { "]" } else { "\n  ]" });
        }
        if map && entries.is_empty() {
            text.push_str(" {}");
        }
        text.push_str(&format!("{behind}\n{tail}license: MIT{behind}"));
        if newline {
            text.push('\n');
        }
        if windows { text.replace('\n', "\r\n") } else { text }
    })
}

fn comments(text: &str) -> Vec<String> {
    let document = Document::read(path_of(text), text).expect("is well formed");
    let mut comments: Vec<String> = document.comments().map(str::to_owned).collect();
    comments.sort();
    comments
}

proptest! {
    #[test]
    fn adding_and_removing_leaves_the_text(text in manifest(), version in "[#][~^]?[0-9]\\.[0-9]\\.[0-9]", indirect: bool) {
        let added = Requirement { indirect, ..requirement(&format!("acme/new{version}")) };
        let mut editor = editor(&text);
        let before = editor.requirements(Section::Dependencies).expect("is right");
        prop_assert!(editor.add(Section::Dependencies, &added).expect("can be added"));
        let (manifest, _) = Manifest::parse(Path::new("Mu.yaml"), editor.text()).expect("is right");
        prop_assert_eq!(manifest.dependencies.len(), before.len() + 1);
        prop_assert_eq!(manifest.dependencies.last().map(|last| last.indirect), Some(indirect));
        prop_assert!(editor.remove(Section::Dependencies, &added.reference).expect("can be removed"));
        prop_assert_eq!(comments(editor.text()), comments(&text));
        let flow = text.contains("dependencies: [") && indirect;
        if !before.is_empty() && !flow {
            prop_assert_eq!(editor.text(), &text);
        }
    }

    #[test]
    fn removing_all_loses_only_their_comments(text in manifest()) {
        let mut editor = editor(&text);
        for entry in editor.requirements(Section::Dependencies).expect("is right") {
            prop_assert!(editor.remove(Section::Dependencies, &entry.reference).expect("can be removed"));
        }
        let (manifest, _) = Manifest::parse(Path::new("Mu.yaml"), editor.text()).expect("is right");
        prop_assert!(manifest.dependencies.is_empty());
        prop_assert_eq!(manifest.license.as_deref(), Some("MIT"));
        prop_assert_eq!(editor.text().matches("# note").count(), text.matches("# note").count());
    }

    #[test]
    fn marks_change_nothing_else(text in manifest(), on: bool) {
        let mut editor = editor(&text);
        for entry in editor.requirements(Section::Dependencies).expect("is right") {
            let marked = Requirement { indirect: on, ..entry };
            editor.add(Section::Dependencies, &marked).expect("can be marked");
        }
        let after = editor.requirements(Section::Dependencies).expect("is right");
        prop_assert!(after.iter().all(|entry| entry.indirect == on));
    }
}
