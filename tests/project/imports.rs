//! Which files of a crate import which, judged by paths: the floors inside `ops`, and loops.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use super::read;
use super::tidy::{is_test, texts, without_tests};

/// The floors of `ops`, from the lowest to the highest; above them are the verbs.
const FLOORS: &[&str] = &["session", "requirements", "explain", "solve", "apply"];

/// Files that a loop of imports may have.
const MOST_IN_A_LOOP: usize = 4;

type Module = Vec<String>;

/// A source file: the meanings of its names, and the paths that it uses.
#[derive(Default)]
struct File {
    path: String,
    module: Module,
    /// The meanings of imported names.
    names: BTreeMap<String, Module>,
    /// The paths that it uses, as they are written.
    used: Vec<Module>,
    /// The modules that it declares.
    children: BTreeSet<String>,
}

/// The text with `pub` for each `pub(in PATH)`.
fn without_visibility(text: &str) -> String {
    let mut parts = text.split("pub(in ");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + "pub" + part.split_once(')').map_or("", |(_, rest)| rest))
}

impl File {
    fn read(path: &str, inside: &str, text: &str) -> Self {
        let mut module: Module = inside.split('/').map(str::to_owned).collect();
        let name = module.pop().unwrap_or_default();
        match name.trim_end_matches(".rs") {
            "mod" | "lib" => {}
            name => module.push(name.to_owned()),
        }
        let lines = without_tests(text).lines().filter(|line| !line.trim_start().starts_with("//"));
        let text = lines.collect::<Vec<_>>().join("\n");
        // A visibility is not an import.
        let text = without_visibility(&text);
        let mut file = Self { path: path.to_owned(), module, ..Self::default() };
        let mut rest = String::new();
        let mut reexports = Vec::new();
        for statement in text.split_inclusive(';') {
            // What ends before the import does not belong to it.
            let begin = statement.rfind("use ").filter(|begin| {
                let before =
                    statement[..*begin].rsplit(['\n', '{', '}']).next().unwrap_or_default();
                let before = before.trim();
                before.is_empty() || before == "pub" || before.starts_with("pub(")
            });
            let Some(begin) = begin else {
                rest.push_str(statement);
                continue;
            };
            let (before, import) = statement.split_at(begin);
            let is_public = before.rsplit('\n').next().unwrap_or_default().contains("pub");
            rest.push_str(before);
            let import = import["use ".len()..].trim_end_matches(';');
            for (path, name) in spelled_out(import) {
                if is_public {
                    reexports.push((path.clone(), name.clone()));
                } else {
                    file.used.push(path.clone());
                }
                file.names.insert(name, path);
            }
        }
        let declared = rest.lines().filter_map(|line| line.trim().strip_suffix(';'));
        let declared = declared.filter_map(|line| line.rsplit_once("mod "));
        file.children = declared.map(|(_, name)| name.to_owned()).collect();
        let words = paths(&rest);
        for (path, name) in reexports {
            // A name that is only re-exported is not used here.
            if words.iter().any(|word| word[0] == name) {
                file.used.push(path);
            }
        }
        let is_relative = |first: &String| {
            ["crate", "self", "super"].contains(&first.as_str()) || file.children.contains(first)
        };
        file.used.extend(words.into_iter().filter(|path| path.len() > 1 && is_relative(&path[0])));
        file
    }

    /// A path from the crate's root, if it leads into the crate.
    fn absolute(&self, path: &[String]) -> Option<Module> {
        let mut at = match path.first()?.as_str() {
            "crate" => Vec::new(),
            "self" | "super" => self.module.clone(),
            child if self.children.contains(child) => self.module.clone(),
            _ => return None,
        };
        for part in path {
            match part.as_str() {
                "crate" | "self" => {}
                "super" => drop(at.pop()),
                part => at.push(part.to_owned()),
            }
        }
        Some(at)
    }
}

/// All words in a text, and the paths that they form with `::`.
fn paths(text: &str) -> Vec<Module> {
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let parts = text.split(|character| !is_word(character) && character != ':');
    let paths = parts.map(|part| part.trim_end_matches(':').split("::").map(str::to_owned));
    paths.map(Iterator::collect).filter(|path: &Module| !path[0].is_empty()).collect()
}

/// The paths of an import, and the names that they get.
pub(super) fn spelled_out(import: &str) -> Vec<(Module, String)> {
    let import = import.trim();
    let Some((front, rest)) = import.split_once('{') else {
        let (path, alias) = import.split_once(" as ").unwrap_or((import, ""));
        let mut path: Module = path.trim().split("::").map(str::to_owned).collect();
        path.retain(|part| !part.is_empty());
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else { return Vec::new() };
        return vec![(path, if alias.is_empty() { last } else { alias.trim().to_owned() })];
    };
    let inside = rest.trim_end().strip_suffix('}').unwrap_or(rest);
    let mut all = Vec::new();
    let (mut depth, mut begin) = (0, 0);
    for (at, character) in inside.char_indices().chain([(inside.len(), ',')]) {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                let one = inside[begin..at].trim();
                // Behind the last comma is nothing.
                if !one.is_empty() {
                    all.extend(spelled_out(&format!("{front}{one}")));
                }
                begin = at + 1;
            }
            _ => {}
        }
    }
    all
}

/// The files of one crate, by their modules.
pub(super) struct Crate {
    files: Vec<File>,
    places: BTreeMap<Module, usize>,
}

impl Crate {
    /// The crates of the repository, without their tests: read once for all who look at them.
    pub(super) fn all() -> &'static BTreeMap<String, Self> {
        static ALL: OnceLock<BTreeMap<String, Crate>> = OnceLock::new();
        ALL.get_or_init(Self::read_all)
    }

    fn read_all() -> BTreeMap<String, Self> {
        let mut crates: BTreeMap<String, Self> = BTreeMap::new();
        for (path, text) in texts("rs") {
            let Some((front, inside)) = path.split_once("src/") else { continue };
            let is_product = front.is_empty()
                || ["crates/", "providers/"].iter().any(|folder| front.starts_with(folder));
            if !is_product || is_test(&path) || inside == "main.rs" {
                continue;
            }
            let one = crates
                .entry(front.to_owned())
                .or_insert_with(|| Self { files: Vec::new(), places: BTreeMap::new() });
            let file = File::read(&path, inside, &text);
            one.places.insert(file.module.clone(), one.files.len());
            one.files.push(file);
        }
        crates
    }

    /// The file that defines the last part of a path, through all re-exports.
    fn find(&self, path: &[String], depth: usize) -> Option<usize> {
        let fits = (0..=path.len()).rev().find(|end| self.places.contains_key(&path[..*end]))?;
        let place = self.places[&path[..fits]];
        let file = &self.files[place];
        let handed_on = path.get(fits).and_then(|name| file.names.get(name));
        match handed_on.and_then(|further| file.absolute(further)) {
            Some(mut further) if depth > 0 => {
                further.extend_from_slice(&path[fits + 1..]);
                self.find(&further, depth - 1)
            }
            _ => Some(place),
        }
    }

    /// How many files it has.
    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// The path of a file.
    pub(super) fn path(&self, file: usize) -> &str {
        &self.files[file].path
    }

    /// The file that defines what a file names by this path.
    pub(super) fn target(&self, file: usize, path: &str) -> Option<usize> {
        let path: Module = path.split("::").map(str::to_owned).collect();
        let file = &self.files[file];
        let meant = file
            .names
            .get(path.first()?)
            .map(|front| front.iter().chain(&path[1..]).cloned().collect::<Module>());
        let path = file.absolute(&meant.unwrap_or(path))?;
        self.find(&path, 8)
    }

    /// For each file those that it imports.
    pub(super) fn imports(&self) -> Vec<BTreeSet<usize>> {
        let of = |(place, file): (usize, &File)| {
            let paths = file.used.iter().filter_map(|path| file.absolute(path));
            let mut files: BTreeSet<usize> = paths.filter_map(|path| self.find(&path, 8)).collect();
            files.remove(&place);
            files
        };
        self.files.iter().enumerate().map(of).collect()
    }

    /// Files that import each other in a loop, with all files of that loop.
    pub(super) fn loops(&self) -> Vec<Vec<&str>> {
        let imports = self.imports();
        let reached: Vec<BTreeSet<usize>> = (0..self.files.len())
            .map(|from| {
                let mut reached = BTreeSet::new();
                let mut open = vec![from];
                while let Some(file) = open.pop() {
                    open.extend(imports[file].iter().filter(|next| reached.insert(**next)));
                }
                reached
            })
            .collect();
        let mut seen = BTreeSet::new();
        let mut loops = Vec::new();
        for from in 0..self.files.len() {
            let together: Vec<usize> =
                reached[from].iter().copied().filter(|to| reached[*to].contains(&from)).collect();
            if together.len() > 1 && seen.insert(together.clone()) {
                loops.push(together.iter().map(|file| &*self.files[*file].path).collect());
            }
        }
        loops
    }
}

#[test]
fn imports_are_read_as_the_compiler_reads_them() {
    let text = "use crate::a::{self, B, c::{D, E as F}};\npub use self::sub::G;\nmod sub;\n\
                pub(in crate::z) fn f() { super::h::i(); sub::j(crate::k::L) }";
    let file = File::read("src/x/mod.rs", "x/mod.rs", text);
    let used: Vec<String> = file.used.iter().map(|path| path.join("::")).collect();
    let expected =
        ["crate::a", "crate::a::B", "crate::a::c::D", "crate::a::c::E", "super::h::i", "sub::j"];
    assert_eq!(used, [&expected[..], &["crate::k::L"]].concat());
    assert_eq!(file.names["F"].join("::"), "crate::a::c::E");
    assert_eq!(file.absolute(&file.names["G"]).expect("is inside").join("::"), "x::sub::G");
}

#[test]
fn a_floor_of_the_operations_uses_only_those_below_it() {
    let crates = Crate::all();
    let program = &crates[""];
    let imports = program.imports();
    let part = |file: usize| {
        let [first, second, ..] = &program.files[file].module[..] else { return None };
        (first == "ops").then_some(second.as_str())
    };
    let floor = |part: &str| FLOORS.iter().position(|floor| *floor == part);
    let (mut wrong, mut seen) = (Vec::new(), BTreeSet::new());
    for (from, imported) in imports.iter().enumerate() {
        let Some(own) = part(from) else { continue };
        seen.insert(own);
        for other in imported {
            let is_fine = match part(*other) {
                Some(other) if other == own => true,
                Some(other) => match (floor(own), floor(other)) {
                    (Some(own), Some(other)) => other < own,
                    (own, other) => own.is_none() && other.is_some(),
                },
                // Nothing of `ops` itself is used; re-exports were resolved.
                None => program.files[*other].module != ["ops"],
            };
            if !is_fine {
                let (from, to) = (&program.files[from].path, &program.files[*other].path);
                wrong.push(format!("{from} uses {to}"));
            }
        }
    }
    assert!(FLOORS.iter().all(|floor| seen.contains(floor)), "{seen:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Verbs that share helpers share a folder, in which only the verbs can be reached from outside.
#[test]
fn no_verb_uses_another_one_of_its_folder() {
    let crates = Crate::all();
    let program = &crates[""];
    let verb = |file: usize| {
        let [first, folder, verb, ..] = &program.files[file].module[..] else { return None };
        let is_shared = FLOORS.contains(&folder.as_str());
        if first != "ops" || is_shared {
            return None;
        }
        let around = read(&format!("src/ops/{folder}/mod.rs"));
        let is_public = around.contains(&format!("pub mod {verb};"));
        let is_verb = read(&program.files[file].path).contains("\npub fn ");
        (is_public && is_verb).then_some((folder.as_str(), verb.as_str()))
    };
    let (mut wrong, mut verbs) = (Vec::new(), BTreeSet::new());
    for (from, imported) in program.imports().iter().enumerate() {
        let Some(own) = verb(from) else { continue };
        verbs.insert(own);
        for other in imported.iter().filter(|other| verb(**other).is_some_and(|other| other != own))
        {
            let (from, to) = (&program.files[from].path, &program.files[*other].path);
            wrong.push(format!("{from} uses {to}"));
        }
    }
    assert!(verbs.len() > 8, "{verbs:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn files_import_each_other_in_short_loops_only() {
    let crates = Crate::all();
    let loops = crates.values().flat_map(Crate::loops);
    let long: Vec<_> = loops.filter(|files| files.len() > MOST_IN_A_LOOP).collect();
    assert!(long.is_empty(), "{long:#?}");
}
