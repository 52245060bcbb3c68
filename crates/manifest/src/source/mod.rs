//! Files that people write, read with the place of every key and value.
//!
//! There is one reader for YAML and JSON, and one error type that points into the file. What is read is a tree of nodes. Scalars
//! in it keep their text as it was written, so that `1.10` stays `1.10`; the reader of a key decides what a scalar means. All
//! input is limited: its size, its depth, and how much aliases may repeat.
//!
//! The markers of a merge conflict are looked for only if a file cannot be read. So they cost nothing otherwise, and a text that
//! merely contains such a line is not refused.

mod error;
mod json;
pub mod layout;
mod value;
mod yaml;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

pub use self::error::{LineCounter, SourceError, line_at_offset, nearest, printable};
pub use self::layout::entries::New;
pub use self::value::{Choice, Table, Text, TextProblem, Value};
pub(crate) use self::value::{choice, keys};

/// The largest file that is read, in bytes.
pub const MAX_BYTES: usize = 1 << 20;
/// How deep lists and maps may be nested.
const MAX_DEPTH: usize = 64;
/// How many values the aliases of one file may repeat.
const MAX_COPIED_NODES: usize = 10_000;

/// How a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FileSyntax {
    /// YAML 1.2.
    Yaml,
    /// JSON.
    Json,
}

impl FileSyntax {
    /// The format that the file's extension implies: JSON for `.json`, otherwise YAML.
    pub fn of(path: &Path) -> Self {
        match path.extension() {
            Some(extension) if extension.eq_ignore_ascii_case("json") => Self::Json,
            _ => Self::Yaml,
        }
    }
}

/// A file that was read: its text, and its values with their places.
#[derive(Debug)]
pub struct Document<'t> {
    path: &'t Path,
    text: &'t str,
    format: FileSyntax,
    root: Node<'t>,
    /// The bytes of each comment.
    comments: Vec<Range<usize>>,
    /// The positions of line breaks, found when a line is first needed.
    breaks: OnceCell<Vec<usize>>,
}

impl<'t> Document<'t> {
    /// Reads `text`, the content of the file at `path`, whose extension gives the format.
    ///
    /// # Errors
    ///
    /// When the text is too large, too deep, not of its format, or has a key twice.
    pub fn read(path: &'t Path, text: &'t str) -> Result<Self, SourceError> {
        Self::read_text(path, text, false)
    }

    /// As [`Self::read`], for changes to the layout of a file that something else reads: merge keys (`<<`) are keys as any other.
    pub(crate) fn laid_out(path: &'t Path, text: &'t str) -> Result<Self, SourceError> {
        Self::read_text(path, text, true)
    }

    fn read_text(path: &'t Path, text: &'t str, takes_merges: bool) -> Result<Self, SourceError> {
        let format = FileSyntax::of(path);
        if text.len() > MAX_BYTES {
            return Err(SourceError::new(path, "", 0..0, too_large()));
        }
        let parsed = match format {
            FileSyntax::Yaml => yaml::parse(text, takes_merges),
            FileSyntax::Json => json::parse(text),
        };
        let parsed = parsed.and_then(|mut parsed| match parsed.merges.take() {
            Some(fault) if !takes_merges => Err(fault),
            _ => Ok(parsed),
        });
        let Parsed { root, comments, .. } = parsed
            .map_err(|fault| conflict(path, text).unwrap_or_else(|| fault.in_file(path, text)))?;
        Ok(Self { path, text, format, root, comments, breaks: OnceCell::new() })
    }

    /// The file's path, for messages.
    pub fn path(&self) -> &'t Path {
        self.path
    }

    /// The file's content.
    pub fn text(&self) -> &'t str {
        self.text
    }

    /// The line of the byte at `offset`, counted from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        let breaks = self
            .breaks
            .get_or_init(|| self.text.match_indices('\n').map(|(place, _)| place).collect());
        breaks.partition_point(|place| *place < offset) + 1
    }

    /// The outermost value; null for an empty file.
    pub fn root_value(&self) -> Value<'_> {
        Value::new(self, &self.root)
    }

    /// An error about the bytes `span` of this file.
    pub fn error(&self, span: Range<usize>, message: impl Into<String>) -> SourceError {
        SourceError::new(self.path, self.text, span, message)
    }

    pub(crate) fn node(&self) -> &Node<'t> {
        &self.root
    }

    /// The comments of the file, in order, each from its `#` to the end of its line.
    pub fn comments(&self) -> impl Iterator<Item = &'t str> {
        self.comments.iter().map(|span| self.text[span.clone()].trim_end())
    }

    /// The comment that follows byte `end` on its line, if only a comma or space is between.
    pub(crate) fn comment_after(&self, end: usize) -> Option<Range<usize>> {
        let next = self.comments.partition_point(|span| span.start < end);
        let span = self.comments.get(next)?.clone();
        let between = &self.text[end..span.start];
        between.chars().all(|c| matches!(c, ' ' | '\t' | ',')).then_some(span)
    }
}

/// The message for a file that is larger than [`MAX_BYTES`].
pub(crate) fn too_large() -> String {
    format!("the file is too large: at most {MAX_BYTES} bytes are allowed")
}

/// The result of a reader.
struct Parsed<'t> {
    root: Node<'t>,
    comments: Vec<Range<usize>>,
    /// The first merge key (`<<`), for those who do not take any.
    merges: Option<Fault>,
}

/// A mistake, before it is known which file it is in.
struct Fault {
    span: Range<usize>,
    message: String,
    help: Option<Cow<'static, str>>,
    related: Option<(Range<usize>, &'static str)>,
}

impl Fault {
    fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, related: None }
    }

    fn too_deep(span: Range<usize>) -> Self {
        Self::new(span, format!("nested more than {MAX_DEPTH} levels deep"))
    }

    fn help(mut self, help: impl Into<Cow<'static, str>>) -> Self {
        self.help = Some(help.into());
        self
    }

    fn in_file(self, path: &Path, text: &str) -> SourceError {
        let mut error = SourceError::new(path, text, self.span, self.message);
        if let Some(help) = self.help {
            error = error.help(help);
        }
        if let Some((span, label)) = self.related {
            error = error.related(span, label);
        }
        error
    }
}

/// The keys of one map that were read so far.
#[derive(Default)]
struct SeenKeys(HashMap<String, Range<usize>>);

impl SeenKeys {
    fn insert(&mut self, key: &str, span: &Range<usize>) -> Result<(), Fault> {
        match self.0.insert(key.to_owned(), span.clone()) {
            None => Ok(()),
            Some(first) => {
                let mut fault = Fault::new(span.clone(), format!("the key `{key}` appears twice"));
                fault.related = Some((first, "first here"));
                Err(fault.help("keep one of them"))
            }
        }
    }
}

/// What to do about a conflict in a file that people write.
const HELP: &str =
    "keep the right lines, and delete the lines that begin with `<<<<<<<`, `=======` and `>>>>>>>`";

/// The error for a file with a merge conflict; `None` if there is none.
pub fn conflict(path: &Path, text: &str) -> Option<SourceError> {
    let (begin, end) = (marker(text, "<<<<<<<"), marker(text, ">>>>>>>"));
    let message = "this file has an unresolved merge conflict";
    let error = |span| SourceError::new(path, text, span, message).help(HELP);
    match (begin, end) {
        (Some(begin), Some(end)) => Some(error(begin).related(end, "to here")),
        (begin, end) => begin.or(end).map(error),
    }
}

/// The text with our side of each conflict, and with their side; `None` if there is no conflict, or one that does not end.
pub fn without_conflicts(text: &str) -> Option<[String; 2]> {
    let [mut ours, mut theirs] = [String::new(), String::new()];
    // Which side the lines belong to: both, ours, the common one, theirs.
    let (mut side, mut conflicts) = (0, 0);
    for line in text.split_inclusive('\n') {
        let is = |mark: &str| {
            let rest = line.strip_prefix(mark);
            rest.is_some_and(|rest| rest.chars().next().is_none_or(char::is_whitespace))
        };
        side = match side {
            0 if is("<<<<<<<") => 1,
            1 if is("|||||||") => 2,
            1 | 2 if is("=======") => 3,
            3 if is(">>>>>>>") => {
                conflicts += 1;
                0
            }
            _ => {
                if matches!(side, 0 | 1) {
                    ours.push_str(line);
                }
                if matches!(side, 0 | 3) {
                    theirs.push_str(line);
                }
                continue;
            }
        };
    }
    (side == 0 && conflicts > 0).then_some([ours, theirs])
}

/// The first line that consists of `mark`, or begins with `mark` and a space.
fn marker(text: &str, mark: &str) -> Option<Range<usize>> {
    let mut places = text.match_indices(mark).map(|(place, _)| place..place + mark.len());
    places.find(|place| {
        let is_first = place.start == 0 || text[..place.start].ends_with('\n');
        is_first && text[place.end..].chars().next().is_none_or(char::is_whitespace)
    })
}

/// A value and its bytes.
#[derive(Debug, Clone)]
pub struct Node<'t> {
    pub(crate) span: Range<usize>,
    pub(crate) kind: Kind<'t>,
}

/// What a value is.
#[derive(Debug, Clone)]
pub(crate) enum Kind<'t> {
    Scalar { text: Cow<'t, str>, style: ScalarNotation },
    List { items: Vec<Node<'t>>, flow: bool },
    Table { entries: Vec<Entry<'t>>, flow: bool },
}

/// A key with its value.
#[derive(Debug, Clone)]
pub(crate) struct Entry<'t> {
    pub(crate) key: Cow<'t, str>,
    pub(crate) key_span: Range<usize>,
    pub(crate) value: Node<'t>,
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScalarNotation {
    /// Without quotes; in JSON a number, `true`, `false` or `null`.
    Plain,
    SingleQuoted,
    /// In double quotes; every JSON string.
    DoubleQuoted,
    /// A YAML block, `|` or `>`.
    Block,
}

impl<'t> Node<'t> {
    /// The bytes of the value in the file.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// Whether the value is empty, `~` or `null`.
    pub fn is_null_node(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, style: ScalarNotation::Plain }
            if matches!(&**text, "" | "~" | "null" | "Null" | "NULL"))
    }

    /// Describes the value here, for messages.
    pub fn describe(&self) -> &'static str {
        match &self.kind {
            Kind::Scalar { .. } if self.is_null_node() => "nothing",
            Kind::Scalar { text, style: ScalarNotation::Plain } if is_bool(text) => "true or false",
            Kind::Scalar { text, style: ScalarNotation::Plain } if is_number(text) => "a number",
            Kind::Scalar { .. } => "text",
            Kind::List { .. } => "a list",
            Kind::Table { .. } => "a map",
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry<'t>> {
        match &self.kind {
            Kind::Table { entries, .. } => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// Whether both mean the same, regardless of where and how they are written.
    pub(crate) fn means(&self, other: &Node<'_>) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Scalar { text, .. }, Kind::Scalar { text: other_text, .. }) => {
                text == other_text && self.describe() == other.describe()
            }
            (Kind::List { items, .. }, Kind::List { items: others, .. }) => {
                items.len() == others.len()
                    && items.iter().zip(others).all(|(item, other)| item.means(other))
            }
            (Kind::Table { entries, .. }, Kind::Table { entries: others, .. }) => {
                entries.len() == others.len()
                    && entries.iter().zip(others).all(|(entry, other)| {
                        entry.key == other.key && entry.value.means(&other.value)
                    })
            }
            _ => false,
        }
    }

    /// How much a copy is, in nodes: those from here down, and one more for each hundred bytes of text.
    pub(crate) fn size(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar { text, .. } => text.len() / 100,
            Kind::List { items, .. } => items.iter().map(Node::size).sum(),
            Kind::Table { entries, .. } => entries.iter().map(|entry| entry.value.size()).sum(),
        }
    }

    /// How many levels there are from here down.
    pub(crate) fn depth(&self) -> usize {
        1 + match &self.kind {
            Kind::Scalar { .. } => 0,
            Kind::List { items, .. } => items.iter().map(Node::depth).max().unwrap_or(0),
            Kind::Table { entries, .. } => {
                entries.iter().map(|entry| entry.value.depth()).max().unwrap_or(0)
            }
        }
    }
}

pub(crate) fn is_bool(text: &str) -> bool {
    matches!(text, "true" | "True" | "TRUE" | "false" | "False" | "FALSE")
}

/// Whether YAML reads an unquoted `text` as a number.
pub(crate) fn is_number(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let radix = |prefix: &str, radix: u32| {
        unsigned
            .strip_prefix(prefix)
            .is_some_and(|digits| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix)))
    };
    if radix("0x", 16) || radix("0o", 8) || matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return true;
    }
    matches!(text, ".nan" | ".NaN" | ".NAN")
        || (unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.')
            && unsigned.parse::<f64>().is_ok())
}

#[cfg(test)]
mod tests;
