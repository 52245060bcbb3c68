//! Properties of every reader: places, limits, and the messages about them.

use std::path::Path;

use super::{Kind, *};

/// Every key and value of a file as `path = place-in-text`.
fn outline(path: &str, text: &str) -> Vec<String> {
    fn walk(node: &Node<'_>, text: &str, name: &str, out: &mut Vec<String>) {
        match &node.kind {
            Kind::Scalar { text: value, .. } => {
                out.push(format!("{name}: {value:?} <- {:?}", &text[node.span()]));
            }
            Kind::List { items, .. } => {
                out.push(format!("{name}: list <- {:?}", &text[node.span()]));
                for (index, item) in items.iter().enumerate() {
                    walk(item, text, &format!("{name}.{index}"), out);
                }
            }
            Kind::Table { entries, .. } => {
                for entry in entries {
                    let key = &text[entry.key_span.clone()];
                    walk(&entry.value, text, &format!("{name}/{key}"), out);
                }
            }
        }
    }
    let mut out = Vec::new();
    let document = Document::read(Path::new(path), text).expect("is well formed");
    walk(document.node(), text, "", &mut out);
    out
}

fn check(path: &str, text: &str, expected: &[&str]) {
    assert_eq!(outline(path, text), expected, "{text}");
}

#[test]
fn every_value_of_yaml_knows_its_place() {
    check(
        "a.yaml",
        "# head\na: 1.10  # why\n'b': \"x\\ty\"\nc:\n- d\n- {e: f,\n   g: }\nh: |\n  one\n  two\n\ni:\nj: [ k, 'l''m' ]\n",
        &[
            r#"/a: "1.10" <- "1.10""#,
            r#"/'b': "x\ty" <- "\"x\\ty\"""#,
            r#"/c: list <- "d\n- {e: f,\n   g: }""#,
            r#"/c.0: "d" <- "d""#,
            r#"/c.1/e: "f" <- "f""#,
            r#"/c.1/g: "" <- """#,
            r#"/h: "one\ntwo\n" <- "one\n  two""#,
            r#"/i: "" <- """#,
            r#"/j: list <- "[ k, 'l''m' ]""#,
            r#"/j.0: "k" <- "k""#,
            r#"/j.1: "l'm" <- "'l''m'""#,
        ],
    );
    check("a.yaml", "\u{feff}é: ü\r\nb: c\r\n", &[r#"/é: "ü" <- "ü""#, r#"/b: "c" <- "c""#]);
    check(
        "a.yaml",
        "a: &x [1]\nb: *x\n",
        &[
            r#"/a: list <- "[1]""#,
            r#"/a.0: "1" <- "1""#,
            r#"/b: list <- "[1]""#,
            r#"/b.0: "1" <- "1""#,
        ],
    );
    for empty in ["", "# only a comment\n", "---\n", "\u{feff}", "\n\n"] {
        assert!(
            Document::read(Path::new("a.yaml"), empty).is_ok_and(|d| d.root_value().is_null()),
            "{empty:?}"
        );
    }
}

#[test]
fn every_value_of_json_knows_its_place() {
    check(
        "a.json",
        "{\n\t\"a\": 1.10,\n\t\"b\": [true, null, \"x\\u00e9\\ud83d\\ude00\\/\"], \"c\": {}, \"d\": -0.5e+3}\n",
        &[
            r#"/"a": "1.10" <- "1.10""#,
            r#"/"b": list <- "[true, null, \"x\\u00e9\\ud83d\\ude00\\/\"]""#,
            r#"/"b".0: "true" <- "true""#,
            r#"/"b".1: "null" <- "null""#,
            r#"/"b".2: "xé😀/" <- "\"x\\u00e9\\ud83d\\ude00\\/\"""#,
            r#"/"d": "-0.5e+3" <- "-0.5e+3""#,
        ],
    );
}

fn check_error(path: &str, text: &str, expected: &str) {
    let error = Document::read(Path::new(path), text).expect_err("has a mistake");
    assert_eq!(error.to_string(), expected, "{}", error.render(false));
}

#[test]
fn mistakes_are_said_with_their_place() {
    check_error("a.yaml", "a: 1\nb: 2\na: 3\n", "a.yaml:3:1: the key `a` appears twice");
    check_error("a.yaml", "a: {b: 1, b: 2}\n", "a.yaml:1:11: the key `b` appears twice");
    check_error("a.yaml", "a: 1\n---\nb: 2\n", "a.yaml:3:1: a second document starts here");
    check_error("a.yaml", "a: [1, 2\n", "a.yaml:1:4: this is not YAML: unclosed bracket '['");
    check_error(
        "a.yaml",
        "a: b: c\n",
        "a.yaml:1:5: this is not YAML: mapping values are not allowed in this context",
    );
    let control = "this is not YAML: it has the control character";
    check_error("a.yaml", "a: 1\n\0b: 2\n", &format!("a.yaml:2:1: {control} U+0000"));
    check_error("a.yaml", "a: 1 # \u{7}\n", &format!("a.yaml:1:8: {control} U+0007"));
    check_error("a.yaml", "a:\n\tb: c\n", "a.yaml:2:2: this is not YAML: a tab cannot indent");
    check_error("a.yaml", "a: b\n\tc: d\n", "a.yaml:2:1: this is not YAML: a tab cannot indent");
    check_error(
        "a.yaml",
        "a:\n - b\n \t- c\n",
        "a.yaml:3:2: this is not YAML: a tab cannot indent",
    );
    check_error("a.yaml", "? [a]\n: b\n", "a.yaml:1:3: a key must be text");
    check_error("a.yaml", "a: !secret x\n", "a.yaml:1:4: the tag `!secret` has no meaning here");
    check_error(
        "a.yaml",
        "a: &x 1\nb:\n  <<: *x\n",
        "a.yaml:3:3: merge keys (`<<`) are not supported here",
    );
    check_error(
        "a.yaml",
        "a: *x\n",
        "a.yaml:1:4: this is not YAML: `*` refers to an anchor that is not there",
    );
    check_error("a.yaml", "a: &x [*x]\n", "a.yaml:1:8: an alias inside its own anchor");
    check_error("a.json", "{\"a\": 1, \"a\": 2}", "a.json:1:10: the key `a` appears twice");
    check_error("a.json", "{\"a\": 1,}", "a.json:1:9: this is not JSON: a comma before `}`");
    check_error(
        "a.json",
        "{a: 1}",
        "a.json:1:2: this is not JSON: expected a key in double quotes",
    );
    check_error("a.json", "{\"a\" 1}", "a.json:1:6: this is not JSON: expected `:`");
    check_error("a.json", "[1 2]", "a.json:1:4: this is not JSON: expected `,` or `]`");
    check_error("a.json", "[01]", "a.json:1:2: this is not JSON: expected a value");
    check_error("a.json", "['a']", "a.json:1:2: this is not JSON: text must be in double quotes");
    check_error("a.json", "// a\n{}", "a.json:1:1: this is not JSON: it has no comments");
    check_error("a.json", "\"a", "a.json:1:3: this is not JSON: the text is not closed");
    check_error("a.json", "\"\\ud800\"", "a.json:1:2: this is not JSON: no such escape");
    check_error("a.json", "{} {}", "a.json:1:4: this is not JSON: expected the end of the file");
    check_error("a.json", "", "a.json:1:1: this is not JSON: expected a value");
}

#[test]
fn numbers_in_json_are_those_of_its_specification() {
    for number in ["0", "-0", "10", "-0.50E+07", "10e-1", "1e400"] {
        let text = format!("[{number}]");
        assert!(Document::read(Path::new("a.json"), &text).is_ok(), "{number}");
    }
    for number in ["1.E5", "1.e5", "0o7", "-0o7", "0x7", "1.", ".5", "+1", "-01", "1e", "1e+", "-"]
    {
        let expected = "a.json:1:2: this is not JSON: expected a value";
        check_error("a.json", &format!("[{number}]"), expected);
    }
}

#[test]
fn hostile_files_are_refused() {
    let deep = "[".repeat(100_000);
    for path in ["a.yaml", "a.json"] {
        let error = Document::read(Path::new(path), &deep).expect_err("is too deep");
        assert!(error.message().contains("nested more than 64 levels deep"), "{error}");
    }
    let mut bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for (name, last) in ('b'..='z').zip('a'..) {
        bomb.push_str(&format!("{name}: &{name} [*{last}, *{last}, *{last}, *{last}, *{last}]\n"));
    }
    let error = Document::read(Path::new("a.yaml"), &bomb).expect_err("is a bomb");
    assert_eq!(error.message(), "anchors and aliases repeat too much");
    let large = "x".repeat(MAX_BYTES + 1);
    let error = Document::read(Path::new("a.yaml"), &large).expect_err("is too large");
    assert_eq!(
        error.to_string(),
        "a.yaml:1:1: the file is too large: at most 1048576 bytes are allowed"
    );
    let comments = "# many\n".repeat(1000);
    assert!(Document::read(Path::new("a.yaml"), &format!("a:\n{comments}  - b\n")).is_ok());
}

#[test]
fn what_a_parser_says_points_at_the_very_character() {
    let texts = ["a: one!two\n", "a: 'it''s !'\n", "a: \"t\\tx\\u00e9!\"\n", "- a: é!\n"];
    for text in texts {
        let document = Document::read(Path::new("a.yaml"), text).expect("is well formed");
        let value = document.root_value();
        let value = value.list().map_or(value, |mut items| items.next().expect("has an item"));
        let value = value
            .table(&["a"])
            .expect("has one key")
            .text("a")
            .expect("is text")
            .expect("is there");
        let at = value.as_str().find('!').expect("is in all of them");
        let error = value.problem(TextProblem::new("here").at(at..at + 1));
        assert_eq!(&text[error.span()], "!", "{text}");
    }
}

fn check_conflict(name: &str, text: &str, expected: Option<usize>) {
    let error = Document::read(Path::new(name), text).err();
    let line = error.filter(|error| error.help_text() == Some(HELP)).map(|error| error.line());
    assert_eq!(line, expected, "{text}");
}

#[test]
fn finds_what_a_merge_left() {
    let both = |head: &str, rest: &str| {
        format!("{head}<<<<<<< HEAD\na: 1\n=======\na: 2\n>>>>>>> other\n{rest}")
    };
    check_conflict("Mu.yaml", &both("", ""), Some(1));
    check_conflict("Mu.yaml", &both("name: a/b\nlist:\n- x\n", "- y\n"), Some(4));
    check_conflict(
        "Mu.yaml",
        "a: 1\r\n<<<<<<< HEAD\r\nb: 1\r\n||||||| base\r\n=======\r\n>>>>>>> x\r\n",
        Some(2),
    );
    check_conflict("Mu.yaml", "a: [\n<<<<<<<\n1\n=======\n", Some(2));
    check_conflict("Mu.yaml", "a: 1\n>>>>>>> x\n", Some(2));
    check_conflict(
        "Mu.json",
        "{\n<<<<<<< HEAD\n\"a\": 1\n=======\n\"a\": 2\n>>>>>>> x\n}\n",
        Some(2),
    );
}

#[test]
fn leaves_other_texts_and_mistakes_alone() {
    check_conflict("Mu.yaml", "a: |\n  <<<<<<< HEAD\n  =======\n  >>>>>>> x\n", None);
    check_conflict("Mu.yaml", "a: [\n<<<<<<<<<\n >>>>>>> x\n=======\n", None);
    check_conflict("Mu.yaml", "a: [\n", None);
}

#[test]
fn lines_are_counted_in_any_order() {
    let text = "a\n\nbc\n\u{e4}\nd";
    let mut counter = LineCounter::new(text);
    for offset in (0..=text.len()).chain((0..=text.len()).rev()).chain([3, 0, 9, 2]) {
        assert_eq!(counter.line_at(offset), line_at_offset(text, offset), "{offset}");
    }
}
