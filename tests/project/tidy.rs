//! Rules for every file of the project: layers, sizes, forbidden words, links.

use std::collections::BTreeSet;
use std::path::Path;

use super::imports::spelled_out;
use super::{files, read, root};

/// Modules to the left of all layers, in separate crates that `mu` re-exports.
const CRATES: &[&str] = &["fs", "reference", "manifest", "select"];

/// The layers, from left to right: a module uses only modules to its left.
///
/// Modules in one layer may use each other.
const LAYERS: &[&[&str]] = &[
    &["env"],
    &["formats"],
    &["workspace"],
    &["contents"],
    &["search"],
    &["index"],
    &["lock"],
    &["store"],
    &["trust"],
    &["packs"],
    &["ops"],
    &["report"],
    &["cli"],
];

/// Lines of code, without comments, that no source file has more of; tests may.
const MOST_LINES: usize = 500;

/// Packages that `Cargo.lock` stays below.
const MOST_PACKAGES: usize = 550;

fn layer(module: &str) -> Option<usize> {
    LAYERS.iter().position(|modules| modules.contains(&module))
}

/// The files with this ending, and their text.
pub(super) fn texts(ending: &str) -> Vec<(String, String)> {
    files("")
        .into_iter()
        .filter(|path| path.extension().is_some_and(|other| other == ending))
        .map(|path| {
            let path = path.to_str().expect("paths of the repository are UTF-8").to_owned();
            let text = read(&path);
            (path, text)
        })
        .collect()
}

pub(super) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| part == "tests" || part == "tests.rs")
}

/// The text before the tests at its end.
pub(super) fn without_tests(text: &str) -> &str {
    let ends = ["test", "all(test, unix)", "all(test, feature = \"buckets\")"];
    ends.iter().fold(text, |text, when| {
        text.split(&format!("\n#[cfg({when})]\nmod tests {{")).next().unwrap_or(text)
    })
}

/// The modules that a file names as `crate::MODULE`, in imports and in paths.
fn used(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let text = lines.collect::<Vec<_>>().join("\n");
    for (at, _) in text.match_indices("crate::") {
        // `$crate::` belongs to a macro, and `pub(in crate::x)` is a visibility.
        let rest = &text[at + "crate::".len()..];
        if rest.starts_with('{') {
            let list = rest.split(';').next().unwrap_or_default();
            let all = spelled_out(&format!("crate::{list}")).into_iter();
            used.extend(all.filter_map(|(path, _)| path.into_iter().nth(1)));
            continue;
        }
        let end = rest
            .find(|character: char| !character.is_ascii_alphanumeric() && character != '_')
            .unwrap_or(rest.len());
        used.insert(rest[..end].to_owned());
    }
    used.remove("");
    used
}

#[test]
fn imports_in_a_list_are_read_one_by_one() {
    let text = "use crate::{a::{b, c}, d, e::F};\nlet x = crate::g::h();";
    assert_eq!(used(text).into_iter().collect::<Vec<_>>(), ["a", "d", "e", "g"]);
}

#[test]
fn a_module_uses_only_what_stands_to_its_left() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, text) in texts("rs") {
        let Some(inside) = path.strip_prefix("src/") else { continue };
        let module = inside.split(['/', '.']).next().unwrap_or_default();
        if ["main", "hub", "lib"].contains(&module) {
            continue;
        }
        let Some(own) = layer(module) else {
            wrong.push(format!("{path}: `{module}` has no layer"));
            continue;
        };
        seen.insert(module.to_owned());
        for other in used(&text).into_iter().filter(|other| !CRATES.contains(&other.as_str())) {
            match layer(&other) {
                Some(layer) if layer <= own => {}
                Some(_) => wrong.push(format!("{path}: `{module}` uses `{other}`")),
                None => wrong.push(format!("{path}: `crate::{other}` has no layer")),
            }
        }
    }
    assert_eq!(seen.len(), LAYERS.iter().map(|layer| layer.len()).sum::<usize>());
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn providers_know_only_the_protocol() {
    for (path, text) in texts("toml") {
        let Some(provider) =
            path.strip_prefix("providers/").and_then(|rest| rest.strip_suffix("/Cargo.toml"))
        else {
            continue;
        };
        let dependencies = text.split("[dev-dependencies]").next().unwrap_or_default();
        let also: &[&str] = match provider {
            // Packages of other ecosystems are what `mu-formats` says.
            "helm" | "oci" | "url" => &["mu-archive", "mu-formats"],
            // The files of an operator are in an image.
            "olm" => &["mu-archive", "mu-formats", "mu-provider-oci"],
            // A module of KCL in a repository is found by the name in its manifest.
            "git" => &["mu-formats"],
            // A plugin hands out archives or folders.
            "exec" => &["mu-archive", "mu-provider-path"],
            "hub" => &["mu-archive"],
            _ => &[],
        };
        for line in dependencies.lines().filter(|line| line.starts_with("mu")) {
            let name = line.split([' ', '.']).next().unwrap_or_default();
            assert!(
                ["mu-provider", "mu-trust"].contains(&name) || also.contains(&name),
                "the provider {provider} depends on {line}"
            );
            // Evidence is handed on as those read it who verify it.
            assert!(provider != "api" || name == "mu-trust", "the protocol depends on {line}");
        }
    }
}

#[test]
fn crates_use_only_those_below_them() {
    for (path, below) in [
        ("crates/manifest", &["mu-provider"][..]),
        ("crates/formats", &["mu-manifest", "mu-provider"]),
        ("crates/archive", &["mu-provider"]),
        ("crates/bucket", &["mu-provider"]),
        ("crates/heap", &[]),
        ("crates/picture", &[]),
        ("crates/trust", &[]),
        // It knows the formats of manifests that this mu reads.
        ("crates/select", &["mu-formats", "mu-manifest"]),
        (
            "crates/hub",
            &[
                "mu-archive",
                "mu-bucket",
                "mu-formats",
                "mu-manifest",
                "mu-provider",
                "mu-provider-hub",
            ],
        ),
        (
            "crates/hub-server",
            &[
                "mu-archive",
                "mu-formats",
                "mu-hub",
                "mu-manifest",
                "mu-picture",
                "mu-provider",
                "mu-provider-hub",
            ],
        ),
    ] {
        let text = read(&format!("{path}/Cargo.toml"));
        let dependencies = text.split("[dependencies]").nth(1).unwrap_or_default();
        let dependencies = dependencies.split("\n[").next().unwrap_or_default();
        let own = dependencies.lines().filter(|line| line.starts_with("mu"));
        for line in own {
            let name = line.split(['.', ' ', '=']).next().unwrap_or_default();
            assert!(below.contains(&name), "{path} depends on {line}");
        }
    }
}

#[test]
fn references_know_nothing_of_manifests() {
    for (path, text) in texts("rs") {
        if path.starts_with("crates/manifest/src/reference/") {
            let others = used(&text).into_iter().filter(|other| other != "reference");
            assert_eq!(others.collect::<Vec<_>>(), [""; 0], "{path}");
        }
    }
}

#[test]
fn only_one_module_knows_the_environment_and_the_clock() {
    let mut wrong = Vec::new();
    for (path, text) in texts("rs") {
        let is_program = ["src/", "providers/", "crates/manifest/", "crates/select/"]
            .iter()
            .any(|folder| path.starts_with(folder));
        if !is_program || is_test(&path) || path == "src/env.rs" || path == "src/main.rs" {
            continue;
        }
        for word in ["env::var", "env::current_dir", "SystemTime::now", "println!", "print!("] {
            if without_tests(&text).contains(word) {
                wrong.push(format!("{path}: {word}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nobody_changes_a_session_that_others_ask() {
    // What is asked must not depend on who asked before: whoever needs other options or settings makes another session.
    let mut wrong = Vec::new();
    for (path, text) in texts("rs").into_iter().filter(|(path, _)| path.starts_with("src/")) {
        let lines = text.lines().enumerate().filter(|(_, line)| line.contains("&mut Session"));
        wrong.extend(lines.map(|(number, _)| format!("{path}:{}", number + 1)));
    }
    assert_eq!(wrong, [""; 0], "take a `Session`, or a `&Session`");
}

#[test]
fn providers_are_asked_for_facts_and_not_for_their_names() {
    let mut wrong = Vec::new();
    for (path, text) in texts("rs") {
        // The words in the sources of a lock are read there.
        if !path.starts_with("src/") || path.starts_with("src/lock/") || is_test(&path) {
            continue;
        }
        for line in without_tests(&text).lines().filter(|line| line.contains("provider")) {
            let compares = [
                "== \"",
                "!= \"",
                "== Some(\"",
                "!= Some(\"",
                "source.provider ==",
                "source.provider !=",
            ];
            if compares.iter().any(|comparison| line.contains(comparison)) {
                wrong.push(format!("{path}: {}", line.trim()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_file_says_why_it_is_there() {
    for (path, text) in texts("rs") {
        assert!(text.starts_with("//!"), "{path} does not open with `//!`");
    }
}

#[test]
fn no_file_is_too_long() {
    for (path, text) in texts("rs") {
        // What explains the code makes no file too long.
        let is_code = |line: &&str| !line.trim_start().starts_with("//");
        let lines = without_tests(&text).lines().filter(is_code).count();
        assert!(is_test(&path) || lines <= MOST_LINES, "{path} has {lines} lines");
    }
}

#[test]
fn nothing_is_unfinished_and_no_test_is_switched_off() {
    let words = ["todo!", "unimplemented!", "#[ignore", "TODO", "FIXME", "XXX"];
    for (path, text) in texts("rs").into_iter().chain(texts("md")).chain(texts("yaml")) {
        if path == "tests/project/tidy.rs" {
            continue;
        }
        for word in words {
            assert!(!text.contains(word), "{path} has {word}");
        }
    }
}

#[test]
fn no_test_sleeps_to_be_right_or_ends_the_process() {
    // Clippy says so of the product; tests have files of their own, for which they are let off its list.
    for (path, text) in texts("rs") {
        let tests = if is_test(&path) { &text } else { &text[without_tests(&text).len()..] };
        for word in ["thread::sleep", "process::exit", "env::set_current_dir"] {
            let is_this = path == "tests/project/tidy.rs";
            assert!(is_this || !tests.contains(word), "{path} has {word}");
        }
    }
}

#[test]
fn few_packages_are_depended_on() {
    let packages = read("Cargo.lock").matches("[[package]]").count();
    assert!(packages < MOST_PACKAGES, "Cargo.lock has {packages} packages");
}

#[test]
fn links_lead_somewhere() {
    let mut links = 0;
    for (path, text) in texts("md") {
        let folder = Path::new(&path).parent().expect("a file is in a folder");
        for (at, _) in text.match_indices("](") {
            let target = text[at + 2..].split(')').next().unwrap_or_default();
            if target.contains("://") {
                continue;
            }
            links += 1;
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if file.is_empty() { Path::new(&path).to_owned() } else { folder.join(file) };
            assert!(root().join(&file).exists(), "{path} links to {target}");
            if !heading.is_empty() {
                let page = read(file.to_str().expect("is UTF-8"));
                let found = page.lines().filter(|line| line.starts_with('#')).any(|line| {
                    let words = line.trim_start_matches('#').trim().to_lowercase();
                    words.replace(' ', "-").replace(['`', ',', '.', '/', '(', ')'], "") == heading
                });
                assert!(found, "{path} links to {target}");
            }
        }
    }
    assert!(links > 10, "{links} links");
}

#[test]
fn the_checks_run_the_tests_as_the_readme_does() {
    let readme = read("README.md");
    let commands: Vec<&str> = readme
        .split("```sh\n")
        .skip(1)
        .map(|block| block.split("\n```").next().unwrap_or_default())
        .collect();
    let [demo, tests, ..] = commands[..] else { panic!("the README has no two commands") };
    assert_eq!(demo, "cargo run -- -C testdata/demo get");
    assert!(
        read(".ci/run").lines().any(|line| line.contains(&format!("{{ {tests}; }}"))),
        ".ci/run does not run `{tests}`"
    );
}

#[test]
fn the_map_names_every_module() {
    let map = read("src/lib.rs");
    let pages = read("docs/ARCHITECTURE.md");
    for module in LAYERS.iter().copied().flatten().chain(CRATES) {
        assert!(map.contains(&format!("[`{module}`]")), "src/lib.rs does not speak of `{module}`");
        assert!(pages.contains(&format!("`{module}`")), "ARCHITECTURE.md is silent on `{module}`");
    }
}

/// `mu cache clean` removes only the parts that it knows, and mu makes a folder private only if it knows all that is in it.
#[test]
fn every_part_of_the_cache_is_known() {
    let known: BTreeSet<&str> = mu::env::IN_CACHE.iter().copied().collect();
    for page in ["src/lib.rs", "docs/ARCHITECTURE.md"] {
        let text = read(page);
        let named = text.split("`CACHE/").skip(1).filter_map(|rest| rest.split('/').next());
        assert_eq!(named.collect::<BTreeSet<_>>(), known, "the files on disk in {page}");
    }
    for (path, text) in texts("rs") {
        let joined = without_tests(&text).split("environment.cache.join(\"").skip(1);
        for part in joined.filter_map(|rest| rest.split(['"', '/']).next()) {
            assert!(known.contains(part), "{path} writes into `{part}` of the cache");
        }
    }
}

/// The page that shows how data flows names the files of one command: some forty can be read in an afternoon.
#[test]
fn the_way_of_a_command_is_short() {
    let page = read("docs/ARCHITECTURE.md");
    let (_, walk) = page.split_once("### The files on this way").expect("has the walk");
    let (walk, _) = walk.split_once("\n## ").expect("is not the last chapter");
    let mut files = BTreeSet::new();
    for row in walk.lines().filter(|line| line.starts_with('|')) {
        for part in row.rsplit(" | ").next().unwrap_or_default().split("; ") {
            let mut folder = "";
            for name in part.split('`').skip(1).step_by(2) {
                match name.ends_with('/') {
                    true => folder = name,
                    false => drop(files.insert(format!("{folder}{name}"))),
                }
            }
        }
    }
    for file in &files {
        assert!(root().join(file).is_file(), "{file} does not exist");
    }
    assert_eq!(files.len(), 30, "{files:#?}");
    assert!(walk.contains("There are 30."), "the page says how many there are");
}

/// The words of the house, each with its type: a type that is renamed or moved takes its row along.
#[test]
fn the_words_of_the_house_have_their_types() {
    let page = read("docs/ARCHITECTURE.md");
    let (_, words) = page.split_once("\n## Words\n").expect("has them");
    let (words, _) = words.split_once("\n## ").expect("is not the last chapter");
    let rows: Vec<Vec<&str>> = words
        .lines()
        .filter(|line| line.starts_with('|') && line.contains('`'))
        .map(|line| line.trim_matches(['|', ' ']).split(" | ").collect())
        .collect();
    assert!(rows.len() > 30, "{rows:?}");
    let mut seen = BTreeSet::new();
    for row in rows {
        let [word, meaning, name, file] = row[..] else { panic!("{row:?}") };
        let (name, file) = (name.trim_matches('`'), file.trim_matches('`'));
        let is_there = ["struct", "enum", "trait"].iter().any(|kind| {
            read(file).contains(&format!("pub {kind} {name}"))
                || read(file).contains(&format!(") {kind} {name}"))
        });
        assert!(is_there, "{file} has no `{name}`");
        assert!(seen.insert(name), "`{name}` is there twice");
        assert!(!word.is_empty() && !meaning.is_empty(), "{name}");
    }
}
