//! The shape of the house in figures: how many files a reader opens, how many names stand for one thing, where comments are
//! missing. `testdata/shape.tsv` has the figures of today; none may get worse, and `BLESS=1 cargo test --test project` writes
//! down those that got better.
//!
//! `cargo test --test project -- --nocapture shape` prints them. What the product is: `src`, `crates` and `providers` without
//! their tests and without the crates for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::imports::Crate;
use super::tidy::{is_test, texts, without_tests};
use super::{is_blessing, read, root};

/// The figures that are written down.
const FIGURES: &str = "testdata/shape.tsv";

/// Lines below which a file that serves only one other could be a part of it.
const SMALL: usize = 80;

/// Lines from which a function needs a comment.
const LONG: usize = 40;

/// Files from which a circle of imports counts.
const CIRCLE: usize = 4;

/// Names that say the same wherever they stand.
const CONVENTIONAL: &[&str] = &[
    "add",
    "as_str",
    "build",
    "check",
    "contains",
    "create",
    "default",
    "display",
    "fetch",
    "find",
    "fmt",
    "from",
    "get",
    "id",
    "insert",
    "into_inner",
    "is_empty",
    "iter",
    "join",
    "kind",
    "len",
    "list",
    "load",
    "name",
    "new",
    "next",
    "open",
    "parse",
    "path",
    "read",
    "remove",
    "resolve",
    "run",
    "save",
    "set",
    "text",
    "url",
    "version",
    "with",
    "write",
];

/// A figure of the house.
struct Figure {
    name: &'static str,
    value: f64,
    /// Whether more is better.
    rises: bool,
}

/// A function of the product.
struct Function<'text> {
    name: &'text str,
    /// Its lines, from its name to its end.
    lines: Vec<&'text str>,
}

/// The files of the product, and their text without tests.
fn product() -> BTreeMap<String, String> {
    let is_product = |path: &str| {
        let is_ours =
            ["src/", "crates/", "providers/"].iter().any(|folder| path.starts_with(folder));
        is_ours && path.contains("src/") && !path.starts_with("crates/testing") && !is_test(path)
    };
    let all = texts("rs").into_iter().filter(|(path, _)| is_product(path));
    all.map(|(path, text)| (path, without_tests(&text).to_owned())).collect()
}

/// The name of the item that a line makes visible outside of its file, if it does.
fn visible(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("pub ").or_else(|| {
        let (_, rest) = line.strip_prefix("pub(")?.split_once(") ")?;
        Some(rest)
    })?;
    let mut words = rest.split_whitespace();
    let kind = words.find(|word| !["async", "unsafe", "extern"].contains(word))?;
    let name = match kind {
        // A function that is evaluated at compile time is a function.
        "const" => match words.next()? {
            "fn" => words.next()?,
            name => name,
        },
        "fn" | "struct" | "enum" | "trait" | "type" | "static" => words.next()?,
        _ => return None,
    };
    let end =
        name.find(|one: char| !one.is_ascii_alphanumeric() && one != '_').unwrap_or(name.len());
    Some(&name[..end])
}

/// The functions of a file, as rustfmt lays them out: the end is a brace below the first word.
fn functions(text: &str) -> Vec<Function<'_>> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let trimmed = line.trim_start();
        let Some((front, rest)) = trimmed.split_once("fn ") else { continue };
        let words = ["", "pub", "const", "async", "unsafe"];
        if !front
            .split(' ')
            .all(|word| words.contains(&word) || word.starts_with("pub(") || word.ends_with(')'))
        {
            continue;
        }
        let name = rest.split(['(', '<']).next().unwrap_or_default();
        let end = format!("{}}}", &line[..line.len() - trimmed.len()]);
        let Some(length) = lines[at..].iter().position(|one| *one == end) else { continue };
        functions.push(Function { name, lines: lines[at..=at + length].to_vec() });
    }
    functions
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("//") && !line.starts_with("///") && !line.starts_with("//!")
}

/// In a hundred visible items, those that share their name with another one.
fn shared_names(files: &BTreeMap<String, String>) -> f64 {
    let mut count: BTreeMap<&str, usize> = BTreeMap::new();
    let names = files.values().flat_map(|text| text.lines()).filter_map(visible);
    for name in names.filter(|name| !CONVENTIONAL.contains(name)) {
        *count.entry(name).or_default() += 1;
    }
    let all: usize = count.values().sum();
    let shared: usize = count.values().filter(|count| **count > 1).sum();
    in_a_hundred(shared, all)
}

fn in_a_hundred(part: usize, all: usize) -> f64 {
    let percent = 1000.0 * part as f64 / all.max(1) as f64;
    percent.round() / 10.0
}

/// Files that one other file imports, and that are small.
fn small_rooms(files: &BTreeMap<String, String>) -> usize {
    let mut small = 0;
    for one in Crate::all().values() {
        let mut users: BTreeMap<usize, usize> = BTreeMap::new();
        for imported in one.imports().iter().flatten() {
            *users.entry(*imported).or_default() += 1;
        }
        let served = users.iter().filter(|(_, users)| **users == 1);
        let lines = served.filter_map(|(file, _)| files.get(one.path(*file)));
        small += lines.filter(|text| text.lines().count() < SMALL).count();
    }
    small
}

/// How many files the session is handed through, from function to function, by `mu get`, and how often a call leads back into one of
/// them from another. Each function is entered once. A method counts where one file alone has one of its name.
fn way_of_get(files: &BTreeMap<String, String>) -> (usize, usize) {
    let crates = Crate::all();
    let program = &crates[""];
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let read: Vec<Vec<Function<'_>>> = (0..program.len())
        .map(|file| files.get(program.path(file)).map(|text| functions(text)).unwrap_or_default())
        .collect();
    for (file, own) in read.iter().enumerate() {
        own.iter().for_each(|function| places.entry(function.name).or_default().push(file));
    }
    let start = (0..program.len()).find(|file| program.path(*file) == "src/ops/get.rs");
    let mut open = vec![(start.expect("the verb has a file"), "get".to_owned())];
    let mut seen: BTreeSet<(usize, String)> = open.iter().cloned().collect();
    let mut rooms: BTreeSet<usize> = open.iter().map(|(file, _)| *file).collect();
    let mut returns = 0;
    while let Some((file, name)) = open.pop() {
        for function in read[file].iter().filter(|function| function.name == name) {
            for called in handed_to(&function.lines.join("\n")) {
                let name = called.rsplit([':', '.']).next().unwrap_or_default();
                let own = read[file].iter().any(|one| one.name == name).then_some(file);
                let target = match called.starts_with('.') {
                    true => places.get(name).and_then(|files| match files[..] {
                        [file] => Some(file),
                        _ => None,
                    }),
                    false if called == name => own.or_else(|| program.target(file, called)),
                    false => program.target(file, called),
                };
                if let Some(target) = target
                    && seen.insert((target, name.to_owned()))
                {
                    returns += usize::from(target != file && !rooms.insert(target));
                    open.push((target, name.to_owned()));
                }
            }
        }
    }
    (rooms.len(), returns)
}

/// What a text hands the session to: the functions that get it, and its own methods, which begin with a point.
fn handed_to(body: &str) -> Vec<&str> {
    let is_word = |one: char| one.is_ascii_alphanumeric() || one == '_' || one == ':';
    let mut all = Vec::new();
    for (at, word) in body.match_indices("session") {
        let (before, after) = (&body[..at], &body[at + word.len()..]);
        if before.ends_with(is_word) {
            continue;
        }
        if let Some(method) = after.strip_prefix('.') {
            let end = method.find(|one| !is_word(one)).unwrap_or(method.len());
            if method[end..].starts_with('(') {
                all.push(&after[..=end]);
            }
            continue;
        }
        if !after.starts_with([',', ')']) {
            continue;
        }
        let mut depth = 0;
        let open = before.char_indices().rev().find(|(_, one)| {
            depth += match one {
                ')' => 1,
                '(' => -1,
                _ => 0,
            };
            depth < 0
        });
        let Some((open, _)) = open else { continue };
        let front = &before[..open];
        let begin = front.rfind(|one| !is_word(one) && one != '.').map_or(0, |at| at + 1);
        let called = &front[begin..];
        // Of a chain of methods, the last one gets it.
        let called = called.rfind('.').map_or(called, |point| &called[point..]);
        all.extend((!called.is_empty()).then_some(called));
    }
    all
}

#[test]
fn whom_the_session_is_handed_to_is_read_from_the_text() {
    let body = "let x = ask(session, &of(a)); plan.carry_out(&b, session)?; session.packs(); one::two(f(1), session)";
    assert_eq!(handed_to(body), ["ask", ".carry_out", ".packs", "one::two"]);
}

/// All figures.
fn figures() -> Vec<Figure> {
    let files = product();
    // They grow with what mu does, so nothing limits them.
    let lines = files.values().map(|text| text.lines().count()).sum::<usize>();
    println!("{lines:>9}  lines of the product, in {} files", files.len());
    let dense: Vec<&str> = files
        .iter()
        .filter(|(path, _)| path.starts_with("src/ops/") || path.starts_with("crates/select/src/"))
        .flat_map(|(_, text)| text.lines())
        .collect();
    let comments = dense.iter().filter(|line| is_comment(line)).count();
    let long = files.values().flat_map(|text| functions(text)).filter(|function| {
        function.lines.len() > LONG && !function.lines.iter().any(|line| is_comment(line))
    });
    let crates = Crate::all();
    let circles = crates.values().flat_map(Crate::loops).filter(|files| files.len() > CIRCLE);
    let (rooms, returns) = way_of_get(&files);
    let figure = |name, value, rises| Figure { name, value, rises };
    vec![
        figure(
            "files below 80 lines that one other file imports",
            small_rooms(&files) as f64,
            false,
        ),
        figure("files that the session of `mu get` is handed through", rooms as f64, false),
        figure("calls on that way that lead back into one of these files", returns as f64, false),
        figure(
            "visible names that stand for several things, in a hundred",
            shared_names(&files),
            false,
        ),
        figure("functions over 40 lines without a comment", long.count() as f64, false),
        figure("circles of more than four files", circles.count() as f64, false),
        figure(
            "lines of comments in `ops` and `select`, in a hundred",
            in_a_hundred(comments, dense.len()),
            true,
        ),
    ]
}

#[test]
fn the_shape_gets_no_worse() {
    let known: BTreeMap<String, f64> = read(FIGURES)
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, value)| (name.to_owned(), value.parse().expect("is a number")))
        .collect();
    let (mut table, mut worse) = (String::new(), Vec::new());
    for Figure { name, value, rises } in figures() {
        println!("{value:>9}  {name}");
        let limit = known.get(name).copied().unwrap_or(if rises { 0.0 } else { f64::INFINITY });
        let is_worse = if rises { value < limit } else { value > limit };
        if is_worse {
            worse.push(format!("{name}: {value}, and it was {limit}"));
        }
        let best = if is_worse { limit } else { value };
        writeln!(table, "{name}\t{best}").expect("text grows");
    }
    if is_blessing() && read(FIGURES) != table {
        std::fs::write(root().join(FIGURES), table).expect("can be written");
    }
    assert!(worse.is_empty(), "{worse:#?}");
}
