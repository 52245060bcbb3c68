//! How a file of a package is shown, judged by its name alone (as a picture, Markdown, or text in some language), and the parts
//! of source code, marked so that the style can colour them: comments, strings, numbers, words, keys.
//!
//! It does not know grammars, only how a language writes these few things. That is enough for reading, works in one pass over any
//! bytes, and needs no grammar tables, which would be larger than the whole server.

use std::fmt;

/// How a language is written.
#[derive(Debug, Clone, Copy)]
pub(in crate::page) struct Language {
    /// What begins a comment up to the end of the line.
    comments: &'static [&'static str],
    /// Whether `/*` and `*/` enclose comments.
    has_blocks: bool,
    /// What texts stand between.
    quotes: &'static str,
    /// Its words, with a space between them.
    words: &'static str,
    /// The separator after a key: `:` or `=`.
    key: Option<char>,
    /// Whether lines with this beginning are commands, and all other lines are their output.
    is_console: bool,
    is_diff: bool,
}

const PLAIN: Language = Language {
    comments: &[],
    has_blocks: false,
    quotes: "\"'",
    words: "",
    key: None,
    is_console: false,
    is_diff: false,
};

const WORDS_C: &str = "\
    abstract as async await bool boolean break case catch chan class const continue crate \
    default defer do double dyn else enum export extends extern false final float fn for from \
    func function go if impl implements import in int interface let long loop map match mod move \
    mut new nil null package private protected pub public range readonly ref return select self \
    Self static string struct super switch this throw trait true try type typeof undefined \
    unsafe use var void where while yield";
const WORDS_SCRIPT: &str = "\
    and as assert async await begin break case class continue def del do done elif else end esac \
    except export False fi finally for from function global if import in is lambda local None \
    nonlocal not or pass raise return self set then True try until while with yield";
const WORDS_DATA: &str = "true false null yes no on off";
const WORDS_DOCKER: &str = "\
    ADD ARG AS CMD COPY ENTRYPOINT ENV EXPOSE FROM HEALTHCHECK LABEL ONBUILD RUN SHELL \
    STOPSIGNAL USER VOLUME WORKDIR";
const WORDS_SQL: &str = "\
    AND AS BY CREATE DELETE DROP FROM GROUP INDEX INSERT INTO JOIN LEFT NOT NULL ON OR ORDER \
    PRIMARY SELECT SET TABLE UPDATE VALUES WHERE";

impl Language {
    /// The language with this name, in a code block or as the ending of a file name.
    pub(in crate::page) fn named(name: &str) -> Option<Self> {
        Some(match name.to_ascii_lowercase().as_str() {
            "yaml" | "yml" => Self { comments: &["#"], words: WORDS_DATA, key: Some(':'), ..PLAIN },
            "json" | "jsonc" | "json5" | "jsonl" => Self {
                comments: &["//"],
                has_blocks: true,
                words: WORDS_DATA,
                key: Some(':'),
                ..PLAIN
            },
            "toml" | "ini" | "cfg" | "conf" | "properties" | "env" => {
                Self { comments: &["#", ";"], words: WORDS_DATA, key: Some('='), ..PLAIN }
            }
            "hcl" | "tf" | "terraform" | "tfvars" => Self {
                comments: &["#", "//"],
                has_blocks: true,
                words: "true false null for in if",
                key: Some('='),
                ..PLAIN
            },
            "console" | "shell-session" | "shellsession" | "terminal" => {
                Self { comments: &["#"], is_console: true, ..PLAIN }
            }
            "sh" | "bash" | "zsh" | "fish" | "shell" | "make" | "makefile" | "mk" | "py"
            | "python" | "rb" | "ruby" | "pl" | "nix" => {
                Self { comments: &["#"], words: WORDS_SCRIPT, ..PLAIN }
            }
            "dockerfile" | "docker" => Self { comments: &["#"], words: WORDS_DOCKER, ..PLAIN },
            "sql" => Self { comments: &["--"], has_blocks: true, words: WORDS_SQL, ..PLAIN },
            "lua" | "hs" => Self { comments: &["--"], words: WORDS_SCRIPT, ..PLAIN },
            // A single quote begins a lifetime as often as a character.
            "rs" | "rust" => {
                Self { comments: &["//"], has_blocks: true, quotes: "\"", words: WORDS_C, ..PLAIN }
            }
            "go" | "js" | "mjs" | "cjs" | "jsx" | "javascript" | "ts" | "tsx" | "typescript"
            | "java" | "kt" | "kotlin" | "c" | "h" | "cc" | "cpp" | "hpp" | "cs" | "swift"
            | "scala" | "proto" | "cue" | "dart" | "groovy" | "php" => Self {
                comments: &["//"],
                has_blocks: true,
                quotes: "\"'`",
                words: WORDS_C,
                ..PLAIN
            },
            "css" | "scss" => Self { has_blocks: true, key: Some(':'), ..PLAIN },
            "diff" | "patch" => Self { is_diff: true, ..PLAIN },
            _ => return None,
        })
    }
}

/// The classes that parts may have.
pub(super) const CLASSES: [&str; 7] = ["c", "s", "n", "w", "k", "p", "d"];

/// Writes code as HTML with its parts marked.
///
/// # Errors
///
/// When `output` fails.
pub(in crate::page) fn write(
    output: &mut dyn fmt::Write,
    language: Option<Language>,
    code: &str,
) -> fmt::Result {
    let Some(language) = language else { return escape(output, code) };
    if language.is_console || language.is_diff {
        return by_line(output, language, code);
    }
    let mut rest = code;
    let mut before = None;
    while let Some(first) = rest.chars().next() {
        let (length, class) = language.next(rest, first, before);
        let (part, after) = rest.split_at(length);
        let class = class.or_else(|| language.is_key(part, after).then_some("k"));
        mark(output, class, part)?;
        before = part.chars().last();
        rest = after;
    }
    Ok(())
}

impl Language {
    /// The length of the next part in bytes, and its class if it is known without context.
    fn next(&self, rest: &str, first: char, before: Option<char>) -> (usize, Option<&'static str>) {
        let line = || rest.find('\n').unwrap_or(rest.len());
        // A `#` within a word does not begin a comment: not in `a/b#^1`, and not in a colour.
        let is_apart =
            before.is_none_or(|before| before.is_whitespace() || ";{}()".contains(before));
        if is_apart && self.comments.iter().any(|comment| rest.starts_with(comment)) {
            return (line(), Some("c"));
        }
        if self.has_blocks && rest.starts_with("/*") {
            return (rest[2..].find("*/").map_or(rest.len(), |end| end + 4), Some("c"));
        }
        let is_word = |character: char| character.is_alphanumeric() || character == '_';
        let is_within = before.is_some_and(is_word);
        if self.quotes.contains(first) && !is_within {
            let length = text(rest, first);
            // A key may be quoted.
            let is_key = self.is_key(&rest[..length], &rest[length..]);
            return (length, (!is_key).then_some("s"));
        }
        if first.is_ascii_digit() && !is_within {
            let fits = |character: char| is_word(character) || character == '.';
            return (rest.find(|end| !fits(end)).unwrap_or(rest.len()), Some("n"));
        }
        if is_word(first) {
            let fits = |character: char| {
                is_word(character) || self.key.is_some() && "-./".contains(character)
            };
            let length = rest.find(|end| !fits(end)).unwrap_or(rest.len());
            let is_known = self.words.split(' ').any(|word| word == &rest[..length]);
            let is_key = self.is_key(&rest[..length], &rest[length..]);
            return (length, (is_known && !is_key).then_some("w"));
        }
        (first.len_utf8(), None)
    }

    /// Whether `part` is a key, by what follows it.
    fn is_key(&self, part: &str, after: &str) -> bool {
        let Some(key) = self.key else { return false };
        let first = part.chars().next();
        let is_name = first.is_some_and(|first| first.is_alphanumeric() || "_\"'".contains(first));
        let after = after.trim_start_matches([' ', '\t']);
        let Some(value) = after.strip_prefix(key) else { return false };
        // In YAML, `a:b` is a string, and `==` is a comparison.
        let ends =
            value.is_empty() || value.starts_with(char::is_whitespace) || part.starts_with('"');
        is_name && (ends || key == '=' && !value.starts_with('='))
    }
}

/// The length in bytes of a string that begins with `quote`. One that is not closed ends with its line.
fn text(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            '\n' if quote != '`' => return at,
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            end if end == quote => return at + end.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Sessions and diffs: the beginning of a line decides what it is.
fn by_line(output: &mut dyn fmt::Write, language: Language, code: &str) -> fmt::Result {
    for line in code.split_inclusive('\n') {
        let (text, end) = line.strip_suffix('\n').map_or((line, ""), |text| (text, "\n"));
        match language.is_diff {
            true => {
                let class = match text.as_bytes().first() {
                    Some(b'+') => Some("s"),
                    Some(b'-') => Some("d"),
                    Some(b'@') => Some("k"),
                    _ => None,
                };
                mark(output, class, text)?;
            }
            false => match text.strip_prefix("$ ").or_else(|| text.strip_prefix("> ")) {
                Some(command) => {
                    mark(output, Some("p"), &text[..2])?;
                    mark(output, Some("w"), command)?;
                }
                None if text.starts_with('#') => mark(output, Some("c"), text)?,
                None => mark(output, None, text)?,
            },
        }
        output.write_str(end)?;
    }
    Ok(())
}

fn mark(output: &mut dyn fmt::Write, class: Option<&str>, part: &str) -> fmt::Result {
    let Some(class) = class.filter(|_| !part.is_empty()) else { return escape(output, part) };
    write!(output, "<span class=\"{class}\">")?;
    escape(output, part)?;
    output.write_str("</span>")
}

fn escape(output: &mut dyn fmt::Write, text: &str) -> fmt::Result {
    for character in text.chars() {
        match character {
            '&' => output.write_str("&amp;")?,
            '<' => output.write_str("&lt;")?,
            '>' => output.write_str("&gt;")?,
            '"' => output.write_str("&quot;")?,
            other => output.write_char(other)?,
        }
    }
    Ok(())
}

/// Pictures that are sent as they are, and their types. Scripts in an SVG do not run: other pages show it
/// only as a picture, and its own page forbids them.
const PICTURES: [(&str, &str); 8] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("ico", "image/x-icon"),
    ("svg", "image/svg+xml"),
];

/// The type of a picture; `None` if the file is not a picture.
pub(in crate::page) fn picture(path: &str) -> Option<&'static str> {
    let ending = ending(path);
    PICTURES.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// Whether a file is Markdown.
pub(super) fn is_markdown(path: &str) -> bool {
    matches!(&*ending(path), "md" | "markdown")
}

/// The language that a file is in, if it is a known one.
pub(super) fn language(path: &str) -> Option<Language> {
    let leaf = path.rsplit('/').next().unwrap_or(path);
    match leaf {
        "Dockerfile" | "Makefile" => Language::named(leaf),
        _ => Language::named(&ending(path)),
    }
}

/// The part after the last dot of a file's name, in lower case.
fn ending(path: &str) -> String {
    let leaf = path.rsplit('/').next().unwrap_or(path);
    leaf.rsplit_once('.').map(|(_, ending)| ending.to_ascii_lowercase()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Code with its parts in brackets: `[CLASS text]`.
    fn marked(language: &str, code: &str) -> String {
        let mut html = String::new();
        write(&mut html, Language::named(language), code).expect("is a text");
        let html = html.replace("<span class=\"", "[").replace("\">", " ").replace("</span>", "]");
        html.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }

    #[test]
    fn parts_are_marked_as_their_language_writes_them() {
        for (language, code, expected) in [
            (
                "yaml",
                "a-b: \"x\" # why\n- acme/x#^2.1\n\"q\": 12\nurl: http://x\non: true\n",
                "[k a-b]: [s \"x\"] [c # why]\n- acme/x#^[n 2.1]\n[k \"q\"]: [n 12]\n[k url]: http://x\n[k on]: [w true]\n",
            ),
            (
                "json",
                "{\"a\": \"b\\\"c\", \"d\":null}",
                "{[k \"a\"]: [s \"b\\\"c\"], [k \"d\"]:[w null]}",
            ),
            ("toml", "[x]\na.b = 1 # c\n", "[x]\n[k a.b] = [n 1] [c # c]\n"),
            (
                "rust",
                "let a: &'a str = \"x\"; // y\n/* z */",
                "[w let] a: &'a str = [s \"x\"]; [c // y]\n[c /* z */]",
            ),
            ("sh", "if x; then echo 'a b'; fi", "[w if] x; [w then] echo [s 'a b']; [w fi]"),
            ("console", "$ mu add x\nadded <x>\n", "[p $ ][w mu add x]\nadded <x>\n"),
            ("diff", "@@\n-a\n+b\n c", "[k @@]\n[d -a]\n[s +b]\n c"),
            ("go", "s := `a\nb` + \"open\n", "s := [s `a\nb`] + [s \"open]\n"),
            ("nonsense", "if <b>", "if <b>"),
        ] {
            assert_eq!(marked(language, code), expected, "{language}");
        }
    }

    #[test]
    fn whatever_is_marked_stays_the_same_text() {
        let odd = "/*\"'`#//ä\\\n\u{0}<script>&amp;--$ +-@@1.e9_é:= ::==\r\n'\\";
        for language in
            ["yaml", "json", "toml", "rust", "sh", "console", "diff", "go", "css", "sql", "x"]
        {
            for begin in odd.char_indices().map(|(at, _)| at) {
                let mut html = String::new();
                write(&mut html, Language::named(language), &odd[begin..]).expect("is a text");
                let mut text = html.replace("</span>", "");
                for class in CLASSES {
                    text = text.replace(&format!("<span class=\"{class}\">"), "");
                }
                assert!(!text.contains('<'), "{html}");
                let text = text.replace("&quot;", "\"").replace("&lt;", "<");
                let text = text.replace("&gt;", ">").replace("&amp;", "&");
                assert_eq!(text, odd[begin..], "{language}");
            }
        }
    }
}
