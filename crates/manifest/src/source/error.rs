//! The error that points into a file: what is wrong, on which line, under which character.
//!
//! There is one type for every YAML and JSON file that mu reads. It renders itself as text, plain or coloured; it prints
//! nothing. The words in it are here, too: hostile text made printable, and the nearest known word for a misspelt one.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};
use mu_provider::{brief, secrets_in, without_secrets};

use crate::reference::is_harmful;

/// A mistake in a file that a person wrote, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceError(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    path: PathBuf,
    text: String,
    span: Range<usize>,
    message: String,
    related: Option<(Range<usize>, String)>,
    help: Option<String>,
    /// Bytes of the text that are never shown, besides those that look like secrets.
    hidden: Option<Range<usize>>,
}

impl SourceError {
    /// An error about the bytes `span` of `text`, which is the content of the file at `path`.
    pub fn new(path: &Path, text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let start = text.floor_char_boundary(span.start);
        let end = text.floor_char_boundary(span.end).max(start);
        Self(Box::new(Details {
            path: path.to_owned(),
            text: text.to_owned(),
            span: start..end,
            message: shown(&message.into()),
            related: None,
            help: None,
            hidden: None,
        }))
    }

    /// Adds a second place that has to do with it.
    #[must_use]
    pub fn related(mut self, span: Range<usize>, label: impl Into<String>) -> Self {
        self.0.related = Some((span, shown(&label.into())));
        self
    }

    /// Adds what the user can do about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.0.help = Some(shown(&help.into()));
        self
    }

    /// Hides bytes of the content, which may be a secret.
    #[must_use]
    pub fn hiding(mut self, span: Range<usize>) -> Self {
        self.0.hidden = Some(span);
        self
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The file's content.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The bytes of the content that the error is about.
    pub fn span(&self) -> Range<usize> {
        self.0.span.clone()
    }

    /// The line, counted from 1.
    pub fn line(&self) -> usize {
        line_at_offset(&self.0.text, self.0.span.start)
    }

    /// The column in characters, counted from 1.
    pub fn column(&self) -> usize {
        let before = &self.0.text[..self.0.span.start];
        let line_start = before.rfind('\n').map_or(0, |index| index + 1);
        before[line_start..].chars().filter(|character| *character != '\u{feff}').count() + 1
    }

    /// What is wrong, in one line.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What the user can do about it.
    pub fn help_text(&self) -> Option<&str> {
        self.0.help.as_deref()
    }

    /// This error about a file that is shown under another name, such as one relative to the current folder.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<PathBuf>) -> Self {
        self.0.path = path.into();
        self
    }

    /// Renders message, place, the line with a caret under the mistake, and the help.
    pub fn render(&self, coloured: bool) -> String {
        let details = &*self.0;
        let shown_path = printable(&details.path.to_string_lossy()).into_owned();
        let visible = self.visible_span();
        let related = details.related.as_ref();
        let related_span = related.map_or(0..0, |(span, _)| span.clone());
        let mut places = [visible.start, visible.end, related_span.start, related_span.end];
        let text = harmless(&details.text, details.hidden.clone(), &mut places);
        let [start, end, related_start, related_end] = places;

        let primary = AnnotationKind::Primary.span(start..end);
        let mut snippet = Snippet::source(text).path(shown_path).fold(true).annotation(primary);
        if let Some((_, label)) = related {
            let context = AnnotationKind::Context.span(related_start..related_end);
            snippet = snippet.annotation(context.label(label.as_str()));
        }
        let title = Level::ERROR.primary_title(details.message.as_str());
        let mut group: Group<'_> = title.element(snippet);
        if let Some(help) = &details.help {
            group = group.element(Level::HELP.message(help.as_str()));
        }
        let renderer = if coloured { Renderer::styled() } else { Renderer::plain() };
        renderer.render(&[group])
    }

    /// The span up to the end of its first line, so that a wrong block does not fill the screen.
    fn visible_span(&self) -> Range<usize> {
        let Range { start, end } = self.0.span;
        let line_end =
            self.0.text[start..].find(['\n', '\r']).map_or(self.0.text.len(), |at| start + at);
        start..end.min(line_end)
    }
}

/// Prints `path:line:column: message`.
impl fmt::Display for SourceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.0.path.to_string_lossy();
        write!(
            formatter,
            "{}:{}:{}: {}",
            printable(&path),
            self.line(),
            self.column(),
            self.0.message
        )
    }
}

impl std::error::Error for SourceError {}

/// The line of the byte at `offset`, counted from 1.
pub fn line_at_offset(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

/// Finds the lines of many places in a text. If they are asked for in order, each part of the text is looked at once.
#[derive(Debug, Clone)]
pub struct LineCounter<'text> {
    text: &'text str,
    /// A place in the text, and the line that it is in.
    known: (usize, usize),
}

impl<'text> LineCounter<'text> {
    /// A counter that has counted nothing yet.
    pub fn new(text: &'text str) -> Self {
        Self { text, known: (0, 1) }
    }

    /// The line of the byte at `offset`, counted from 1.
    pub fn line_at(&mut self, offset: usize) -> usize {
        // What a merge key or an alias brings stands before.
        let (from, line) = if offset < self.known.0 { (0, 1) } else { self.known };
        let between = self.text.as_bytes().get(from..offset.min(self.text.len()));
        let more = between.unwrap_or_default().iter().filter(|byte| **byte == b'\n').count();
        self.known = (offset, line + more);
        self.known.1
    }
}

/// Words that may quote the file, as they may be shown.
fn shown(text: &str) -> String {
    printable(&brief(&without_secrets(text))).into_owned()
}

/// The text with a mark in place of every character that could control a terminal, and of what may be a
/// secret, or is `hidden`; `places` move along.
fn harmless<'t>(text: &'t str, hidden: Option<Range<usize>>, places: &mut [usize]) -> Cow<'t, str> {
    let is_kept = |rest: &str, character: char| match character {
        '\n' | '\t' => true,
        '\r' => rest.starts_with("\r\n"),
        character => !is_harmful(character),
    };
    let mut secrets = secrets_in(text);
    if let Some(hidden) = hidden {
        secrets.retain(|secret| secret.end <= hidden.start || hidden.end <= secret.start);
        secrets.push(hidden);
        secrets.sort_by_key(|secret| secret.start);
    }
    if secrets.is_empty()
        && text.char_indices().all(|(at, character)| is_kept(&text[at..], character))
    {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    let mut moved = places.to_vec();
    let mut secrets = secrets.into_iter().peekable();
    for (at, character) in text.char_indices() {
        let here = shown.len();
        if secrets.peek().is_some_and(|secret| secret.end <= at) {
            secrets.next();
        }
        if let Some(secret) = secrets.peek().filter(|secret| secret.contains(&at)) {
            if at == secret.start {
                shown.push_str("****");
            }
        // A byte order mark is not part of the first line.
        } else if at > 0 || character != '\u{feff}' {
            shown.push(if is_kept(&text[at..], character) { character } else { '\u{fffd}' });
        }
        for (place, moved) in places.iter().zip(&mut moved) {
            if *place == at {
                *moved = here;
            } else if *place > at {
                *moved = shown.len();
            }
        }
    }
    places.copy_from_slice(&moved);
    Cow::Owned(shown)
}

/// Escapes characters that could control a terminal or reorder a line: control, zero-width and bidirectional
/// ones.
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 8);
    for character in text.chars() {
        match character {
            '\n' => escaped.push_str("\\n"),
            '\t' => escaped.push_str("\\t"),
            '\r' => escaped.push_str("\\r"),
            character if is_harmful(character) => {
                write!(escaped, "\\u{{{:x}}}", u32::from(character)).expect("a String takes all");
            }
            character => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

/// The known word that `word` was most likely meant to be, if one is near enough.
///
/// Case, `-` and `_` do not count, so `Dependencies` and `dev-dependencies` match.
pub fn nearest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = folded(word);
    // Longer words would take long to compare, and are not close to any.
    if word.is_empty() || word.len() > 64 {
        return None;
    }
    known
        .into_iter()
        .map(|candidate| (distance(&word, &folded(candidate)), candidate))
        .filter(|(distance, candidate)| {
            *distance <= (candidate.len().min(word.len()) / 3).max(1)
                || begin_alike(&word, &folded(candidate))
        })
        .filter(|(distance, candidate)| *distance < candidate.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Whether two words are the same except for their endings: `registry` and `registries`.
fn begin_alike(left: &[char], right: &[char]) -> bool {
    let same = left.iter().zip(right).take_while(|(left, right)| left == right).count();
    same >= 5 && same + 1 >= left.len().min(right.len())
}

fn folded(word: &str) -> Vec<char> {
    word.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

/// The number of edits that turn one word into the other; swapping two neighbours counts as one.
#[expect(
    clippy::indexing_slicing,
    reason = "the table has a row and a column more than the words have characters"
)]
fn distance(left: &[char], right: &[char]) -> usize {
    let width = right.len() + 1;
    let mut rows = vec![0; (left.len() + 1) * width];
    for (index, cell) in rows.iter_mut().take(width).enumerate() {
        *cell = index;
    }
    for (i, a) in left.iter().enumerate() {
        let row = (i + 1) * width;
        rows[row] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let changed = rows[row - width + j] + usize::from(a != b);
            let mut least = changed.min(rows[row + j] + 1).min(rows[row - width + j + 1] + 1);
            let swapped = i > 0 && j > 0 && *a == right[j - 1] && left[i - 1] == *b;
            if swapped {
                least = least.min(rows[row - 2 * width + j - 1] + 1);
            }
            rows[row + j + 1] = least;
        }
    }
    rows[rows.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, span: Range<usize>, expected: &str) {
        let error = SourceError::new(Path::new("Mu.yaml"), text, span, "wrong");
        assert_eq!(
            error.render(false),
            expected.trim_start_matches('\n'),
            "\n{}",
            error.render(false)
        );
    }

    #[test]
    fn shows_the_line_and_a_caret() {
        check(
            "name: a\nversion: 1.x\n",
            17..20,
            "
error: wrong
 --> Mu.yaml:2:10
  |
2 | version: 1.x
  |          ^^^",
        );
    }

    #[test]
    fn shows_two_places_and_help() {
        let error = SourceError::new(
            Path::new("Mu.yaml"),
            "a: 1\nb: 2\na: 3\n",
            10..11,
            "`a` appears twice",
        )
        .related(0..1, "first here")
        .help("remove one");
        assert_eq!((error.line(), error.column()), (3, 1));
        assert_eq!(error.to_string(), "Mu.yaml:3:1: `a` appears twice");
        insta::assert_snapshot!(error.render(false), @r"
        error: `a` appears twice
         --> Mu.yaml:3:1
          |
        1 | a: 1
          | - first here
        2 | b: 2
        3 | a: 3
          | ^
          |
          = help: remove one
        ");
    }

    #[test]
    fn never_shows_a_secret_of_the_file() {
        let text = "base: https://ada:hunter2@h/ # hunter?\nurl: https://hunter2@h/x?k=hunter2#f\n";
        let error = SourceError::new(
            Path::new("workspace.yaml"),
            text,
            text.find("url").expect("is there") + 5..text.len() - 1,
            "`https://ada:hunter2@h` is wrong",
        )
        .related(6..28, "first `hunter3@h:x`, `https://hunter2@h`")
        .help("write `https://hunter2@h/`");
        insta::assert_snapshot!(error.render(false), @r"
        error: `https://****@h` is wrong
         --> workspace.yaml:2:6
          |
        1 | base: https://****@h/ # hunter?
          |       --------------- first `hunter3@h:x`, `https://****@h`
        2 | url: https://****@h/x?****#f
          |      ^^^^^^^^^^^^^^^^^^^^^^^
          |
          = help: write `https://****@h/`
        ");
        assert!(!format!("{error} {}", error.message()).contains("hunter2"));
    }

    #[test]
    fn never_prints_an_escape_sequence() {
        let error = SourceError::new(
            Path::new("a\u{1b}[2J"),
            "na\u{1b}[31mme: \u{202e}x",
            0..2,
            "bad \u{1b}[31m",
        )
        .help("\u{7}");
        assert!(
            !error.render(false).contains(['\u{1b}', '\u{7}', '\u{202e}']),
            "{:?}",
            error.render(false)
        );
        assert!(error.render(true).contains('\u{1b}'));
        let error = SourceError::new(Path::new("a"), "\u{feff}", 3..3, "bad");
        assert!(error.render(false).contains("a:1:1"), "{}", error.render(false));
        let error = SourceError::new(Path::new("a"), "x\u{91}: \u{85}é\rb\n", 8..10, "bad");
        insta::assert_snapshot!(error.render(false), @r"
        error: bad
         --> a:1:6
          |
        1 | x�: �é�b
          |      ^
        ");
    }

    #[test]
    fn stands_spans_at_the_end_and_across_lines() {
        let error = SourceError::new(Path::new("Mu.yaml"), "é: [\n", 99..200, "not closed");
        assert_eq!((error.line(), error.column()), (2, 1));
        assert!(error.render(false).contains("Mu.yaml"));
        let error = SourceError::new(Path::new("Mu.yaml"), "é: [\n a,\n]", 4..9, "long");
        assert_eq!((error.line(), error.column()), (1, 4));
        assert!(error.render(false).ends_with("é: [\n  |    ^"), "{}", error.render(false));
    }

    #[test]
    fn escapes_only_what_could_do_harm() {
        assert_eq!(printable("héllo `x`"), "héllo `x`");
        assert_eq!(printable("a\u{1b}[31m\u{202e}b\n"), "a\\u{1b}[31m\\u{202e}b\\n");
    }

    #[test]
    fn finds_the_word_that_was_meant() {
        let known = ["dependencies", "devDependencies", "name", "base", "version", "registries"];
        let check = |word: &str, expected: Option<&str>| {
            assert_eq!(nearest(word, known), expected, "{word}")
        };
        check("Dependencies", Some("dependencies"));
        check("dev-dependencies", Some("devDependencies"));
        check("dependecies", Some("dependencies"));
        check("nmae", Some("name"));
        check("verison", Some("version"));
        check("registry", Some("registries"));
        check("depends", Some("dependencies"));
        check("scripts", None);
        check("", None);
        check("x", None);
    }
}
