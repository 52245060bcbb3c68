//! Reads a tree key by key, with errors that point at the place.
//!
//! [`Value`] is a place in a file, [`Table`] is a map whose keys are known, and [`Text`] is a scalar or a key that another
//! parser reads. Errors of that parser point into the file.
//!
//! The keys of a map and the words that a value can be are each declared once. Readers, editors, the suggestions for misspelt
//! words, and the JSON schema all use the declaration.

use std::ops::Range;

use super::{
    Document, Entry, FileSyntax, Kind, Node, ScalarNotation, SourceError, is_bool, nearest,
};

/// A parser's error about a text: the wrong bytes, and the reason.
#[derive(Debug)]
pub struct TextProblem {
    /// The bytes of the text; all of it, if not known.
    pub span: Option<Range<usize>>,
    /// What is wrong.
    pub message: String,
    /// What can be done about it.
    pub help: Option<String>,
    /// The bytes of the text that no message shows, because they may be a secret.
    pub hidden: Option<Range<usize>>,
}

impl TextProblem {
    /// A problem of the whole text.
    pub fn new(message: impl Into<String>) -> Self {
        Self { span: None, message: message.into(), help: None, hidden: None }
    }

    /// Narrows it to some bytes of the text.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }

    /// Adds what can be done about it.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Hides some bytes of the text, which may be a secret.
    #[must_use]
    pub fn hiding_bytes(mut self, bytes: Range<usize>) -> Self {
        self.hidden = Some(bytes);
        self
    }
}

/// A value and the file it is in.
#[derive(Debug, Clone, Copy)]
pub struct Value<'d> {
    document: &'d Document<'d>,
    node: &'d Node<'d>,
}

impl<'d> Value<'d> {
    pub(super) fn new(document: &'d Document<'d>, node: &'d Node<'d>) -> Self {
        Self { document, node }
    }

    /// The file.
    pub fn document(self) -> &'d Document<'d> {
        self.document
    }

    /// The bytes of the value in the file.
    pub fn span(self) -> Range<usize> {
        self.node.span.clone()
    }

    /// Whether the value is empty.
    pub fn is_null(self) -> bool {
        self.node.is_null_node()
    }

    /// Whether this is a list.
    pub fn is_list(self) -> bool {
        matches!(self.node.kind, Kind::List { .. })
    }

    /// Whether this is a map.
    pub fn is_table(self) -> bool {
        matches!(self.node.kind, Kind::Table { .. })
    }

    /// An error about this value.
    pub fn error(self, message: impl Into<String>) -> SourceError {
        self.document.error(self.span(), message)
    }

    fn expected(self, what: &str) -> SourceError {
        self.error(format!("expected {what}, found {}", self.node.describe()))
    }

    /// The scalar as text. In YAML, an unquoted number is the text that it is written with.
    ///
    /// # Errors
    ///
    /// When this is a list, a map or empty, or in JSON not a string.
    pub fn text(self) -> Result<Text<'d>, SourceError> {
        let plain = matches!(self.node.kind, Kind::Scalar { style: ScalarNotation::Plain, .. });
        if plain && self.document.format == FileSyntax::Json {
            return Err(self.not_text());
        }
        self.word().map_err(|_| self.not_text())
    }

    /// The error for a value that should be text, with how to write it if that is clear.
    fn not_text(self) -> SourceError {
        let error = self.expected("text");
        let is_json = self.document.format == FileSyntax::Json;
        let quoted = |text: &str| if is_json { format!("\"{text}\"") } else { text.to_owned() };
        match &self.node.kind {
            Kind::Scalar { text, .. } if !self.is_null() => {
                error.help(format!("write `{}`", quoted(text)))
            }
            Kind::List { items, .. } => match items.as_slice() {
                [Node { kind: Kind::Scalar { text, .. }, .. }] => {
                    error.help(format!("write `{}`, without brackets", quoted(text)))
                }
                _ => error.help("write one text; only one is possible here"),
            },
            _ => error,
        }
    }

    /// The scalar as text, whether it is written as text, a number or a truth value.
    ///
    /// # Errors
    ///
    /// When this is a list, a map or empty.
    pub fn word(self) -> Result<Text<'d>, SourceError> {
        match &self.node.kind {
            Kind::Scalar { text, style } if !self.is_null() => {
                Ok(Text { document: self.document, text, span: self.span(), style: *style })
            }
            _ => Err(self.expected("text or a number")),
        }
    }

    /// The truth value.
    ///
    /// # Errors
    ///
    /// When this is neither `true` nor `false`.
    pub fn flag(self) -> Result<bool, SourceError> {
        match &self.node.kind {
            Kind::Scalar { text, style: ScalarNotation::Plain } if is_bool(text) => {
                Ok(text.eq_ignore_ascii_case("true"))
            }
            _ => Err(self.expected("`true` or `false`")),
        }
    }

    /// The values of a list.
    ///
    /// # Errors
    ///
    /// When this is not a list.
    pub fn list(self) -> Result<impl Iterator<Item = Value<'d>>, SourceError> {
        match &self.node.kind {
            Kind::List { items, .. } => {
                Ok(items.iter().map(move |node| Value { document: self.document, node }))
            }
            Kind::Scalar { .. } => {
                let error = self.expected("a list");
                Err(match self.as_list() {
                    Some(list) => error.help(format!("write `{list}`")),
                    None => error,
                })
            }
            _ => Err(self.expected("a list")),
        }
    }

    /// How a list is written of the texts that this holds, between commas.
    pub(crate) fn as_list(self) -> Option<String> {
        let is_harmless = |one: char| one.is_alphanumeric() || "._-/#^~".contains(one);
        let needs_no_quotes = |item: &str| {
            self.document.format == FileSyntax::Yaml
                && item.starts_with(char::is_alphanumeric)
                && item.chars().all(is_harmless)
        };
        let text = self.word().ok()?;
        let items =
            text.as_str().split(',').map(str::trim).map(|item| match needs_no_quotes(item) {
                true => item.to_owned(),
                false => serde_json::to_string(item).expect("text is always JSON"),
            });
        Some(format!("[{}]", items.collect::<Vec<_>>().join(", ")))
    }

    /// The keys and values of a map that can have any keys.
    ///
    /// # Errors
    ///
    /// When this is not a map.
    pub fn entries(self) -> Result<impl Iterator<Item = (Text<'d>, Value<'d>)>, SourceError> {
        let document = self.document;
        let pair = move |entry: &'d Entry<'d>| {
            let span = entry.key_span.clone();
            let key = Text { document, text: &entry.key, span, style: key_style(document, entry) };
            (key, Value { document, node: &entry.value })
        };
        match &self.node.kind {
            Kind::Table { entries, .. } => Ok(entries.iter().map(pair)),
            _ => Err(self.expected("a map").help(match document.format {
                FileSyntax::Yaml => "write lines such as `key: value`, or `{key: value}`",
                FileSyntax::Json => "a map is `{\"key\": \"value\"}`",
            })),
        }
    }

    /// The whole of a file, like [`Value::table`]; `others` says where the keys are that people look for here.
    ///
    /// # Errors
    ///
    /// As of [`Value::table`].
    pub fn file(
        self,
        keys: &'static [&'static str],
        others: &str,
    ) -> Result<Table<'d>, SourceError> {
        self.table(keys).map_err(|error| match error.help_text() {
            Some(OWN_KEY) => error.help(format!("{OWN_KEY}; {others}")),
            _ => error,
        })
    }

    /// A map that has only these keys, and any that start with `x-`.
    ///
    /// # Errors
    ///
    /// When this is not a map, or has another key.
    pub fn table(self, keys: &'static [&'static str]) -> Result<Table<'d>, SourceError> {
        for (key, _) in self.entries()? {
            if !keys.contains(&key.as_str()) && !key.as_str().starts_with("x-") {
                return Err(unknown_key(&key, keys));
            }
        }
        Ok(Table { value: self, keys })
    }
}

fn key_style(document: &Document<'_>, entry: &Entry<'_>) -> ScalarNotation {
    match document.text.as_bytes().get(entry.key_span.start) {
        Some(b'"') => ScalarNotation::DoubleQuoted,
        Some(b'\'') => ScalarNotation::SingleQuoted,
        _ => ScalarNotation::Plain,
    }
}

/// What helps where no known key is like the one that is written.
const OWN_KEY: &str = "a key of your own starts with `x-`";

fn unknown_key(key: &Text<'_>, keys: &[&str]) -> SourceError {
    let error = key.error(format!("unknown key `{}`", key.as_str()));
    match nearest(key.as_str(), keys.iter().copied()) {
        Some(known) => error.help(format!("did you mean `{known}`?")),
        None if keys.len() <= 8 => error.help(format!("known here: `{}`", keys.join("`, `"))),
        None => error.help(OWN_KEY),
    }
}

/// A map whose keys are known.
#[derive(Debug, Clone, Copy)]
pub struct Table<'d> {
    value: Value<'d>,
    keys: &'static [&'static str],
}

impl<'d> Table<'d> {
    /// The map itself.
    pub fn value(self) -> Value<'d> {
        self.value
    }

    /// The value of `key`, if one is written.
    pub fn get(self, key: &str) -> Option<Value<'d>> {
        debug_assert!(self.keys.contains(&key) || key.starts_with("x-"), "`{key}` is a known key");
        let entry = self.value.node.entry(key)?;
        let value = Value { document: self.value.document, node: &entry.value };
        (!value.is_null()).then_some(value)
    }

    /// The text of `key`.
    ///
    /// # Errors
    ///
    /// When the value has another type.
    pub fn text(self, key: &str) -> Result<Option<Text<'d>>, SourceError> {
        self.get(key).map(Value::text).transpose()
    }

    /// The text of `key`, which may also be written as a number.
    ///
    /// # Errors
    ///
    /// When the value has another type.
    pub fn word(self, key: &str) -> Result<Option<Text<'d>>, SourceError> {
        self.get(key).map(Value::word).transpose()
    }

    /// The text of `key` as an owned string.
    ///
    /// # Errors
    ///
    /// When the value has another type.
    pub fn string(self, key: &str) -> Result<Option<String>, SourceError> {
        Ok(self.text(key)?.map(|text| text.as_str().to_owned()))
    }

    /// The truth value of `key`; `false` if there is none.
    ///
    /// # Errors
    ///
    /// When the value has another type.
    pub fn flag(self, key: &str) -> Result<bool, SourceError> {
        Ok(self.get(key).map(Value::flag).transpose()?.unwrap_or_default())
    }

    /// The result of `read` for every value in the list at `key`; empty if there is no such key.
    ///
    /// # Errors
    ///
    /// When the value is not a list, or `read` fails.
    pub fn list<T>(
        self,
        key: &str,
        read: impl FnMut(Value<'d>) -> Result<T, SourceError>,
    ) -> Result<Vec<T>, SourceError> {
        match self.get(key) {
            Some(value) => value.list()?.map(read).collect(),
            None => Ok(Vec::new()),
        }
    }

    /// The results of `read` for every entry of the map at `key`; empty if there is no such key.
    ///
    /// # Errors
    ///
    /// When the value is not a map, or `read` fails.
    pub fn entries<T, C: Default + FromIterator<T>>(
        self,
        key: &str,
        read: impl FnMut((Text<'d>, Value<'d>)) -> Result<T, SourceError>,
    ) -> Result<C, SourceError> {
        match self.get(key) {
            Some(value) => value.entries()?.map(read).collect(),
            None => Ok(C::default()),
        }
    }

    /// The list of texts at `key`.
    ///
    /// # Errors
    ///
    /// When the value is not a list, or one of its elements is not text.
    pub fn strings(self, key: &str) -> Result<Vec<String>, SourceError> {
        self.list(key, |value| Ok(value.text()?.as_str().to_owned()))
    }
}

/// A text in a file: a scalar or a key.
#[derive(Debug, Clone)]
pub struct Text<'d> {
    document: &'d Document<'d>,
    text: &'d str,
    span: Range<usize>,
    style: ScalarNotation,
}

impl<'d> Text<'d> {
    /// The text, unquoted and unescaped.
    pub fn as_str(&self) -> &'d str {
        self.text
    }

    /// Its bytes in the file, including quotes.
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// An error about this text.
    pub fn error(&self, message: impl Into<String>) -> SourceError {
        self.document.error(self.span(), message)
    }

    /// Parses the text with `parser`.
    ///
    /// # Errors
    ///
    /// The parser's error, pointing at the characters in the file.
    pub fn parse<T, P: Into<TextProblem>>(
        &self,
        parser: impl FnOnce(&str) -> Result<T, P>,
    ) -> Result<T, SourceError> {
        parser(self.text).map_err(|problem| self.problem(problem.into()))
    }

    /// Converts a parser's error about this text into one that points into the file.
    pub fn problem(&self, problem: TextProblem) -> SourceError {
        let span = problem.span.map_or_else(|| self.span(), |span| self.place_of(span));
        let mut error = self.document.error(span, problem.message);
        if let Some(hidden) = problem.hidden {
            error = error.hiding(self.place_of(hidden));
        }
        match problem.help {
            Some(help) => error.help(help),
            None => error,
        }
    }

    /// The bytes of the file where the bytes `range` of the text are written.
    pub fn place_of(&self, range: Range<usize>) -> Range<usize> {
        let source = &self.document.text[self.span()];
        let place = |offset: usize| offset_in_source(source, self.style, self.text, offset);
        match (place(range.start), place(range.end)) {
            (Some(start), Some(end)) => {
                let start = self.span.start + start;
                start..(self.span.start + end).max(start)
            }
            _ => self.span(),
        }
    }
}

/// Where byte `offset` of `text` is in `source`, as it is written there; `None` if the text is folded.
fn offset_in_source(
    source: &str,
    style: ScalarNotation,
    text: &str,
    offset: usize,
) -> Option<usize> {
    let mut at = match style {
        ScalarNotation::Plain => 0,
        ScalarNotation::SingleQuoted | ScalarNotation::DoubleQuoted => 1,
        ScalarNotation::Block => return None,
    };
    let prefix = text.get(..offset)?;
    for character in prefix.chars() {
        let rest = source.get(at..)?;
        at += match (style, rest.as_bytes().first()?) {
            (ScalarNotation::SingleQuoted, b'\'') => 2,
            (ScalarNotation::DoubleQuoted, b'\\') => escape_length(rest)?,
            _ if rest.starts_with(character) => character.len_utf8(),
            _ => return None,
        };
    }
    Some(at)
}

fn escape_length(rest: &str) -> Option<usize> {
    Some(match rest.as_bytes().get(1)? {
        b'x' => 4,
        b'u' => match rest.as_bytes().get(2..4)? {
            // Two halves of a surrogate pair are one character.
            [b'd' | b'D', b'8' | b'9' | b'a' | b'A' | b'b' | b'B'] => 12,
            _ => 6,
        },
        b'U' => 10,
        b'\n' | b'\r' => return None,
        _ => 2,
    })
}

/// A value that is one of a few words; declare it with [`choice!`](crate::choice).
pub trait Choice: Copy + 'static {
    /// All values, in order.
    const ALL: &'static [Self];

    /// The word for it in files, flags and answers.
    fn word(self) -> &'static str;

    /// The value of a word.
    fn of_word(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.word() == word)
    }
}

/// Declares an enumeration whose values are words in a file: its variants with their words, a [`Choice`], and its JSON
/// schema.
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])*
        $visibility:vis enum $name:ident { $($(#[$about:meta])* $variant:ident = $word:literal,)* }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        $visibility enum $name {
            $($(#[$about])* $variant,)*
        }

        impl $name {
            /// The word for it in files, flags and answers.
            $visibility const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl $crate::source::Choice for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn word(self) -> &'static str {
                self.as_str()
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({ "type": "string", "enum": [$($word),*] })
            }
        }
    };
}

/// Declares the keys of a map in a file, with the types of their values in its JSON schema. Other keys are
/// unknown, except those that begin with `x-`. Code names a key by the constant with its field's name. The compiler
/// reports one that this crate does not use, unless its name begins with `_`; it is silent in other crates.
#[macro_export]
macro_rules! keys {
    (
        $(#[$meta:meta])*
        $visibility:vis struct $name:ident { $($(#[$about:meta])* $key:literal $field:ident: $shape:ty,)* }
    ) => {
        #[derive(schemars::JsonSchema)]
        $(#[$meta])*
        #[schemars(deny_unknown_fields, extend("patternProperties" = {"^x-": {}}))]
        $visibility struct $name {
            $($(#[$about])* #[schemars(rename = $key)] $field: $shape,)*
        }

        #[warn(dead_code)]
        #[allow(non_upper_case_globals, reason = "they are named as the fields are")]
        impl $name {
            /// The keys, in the order in which they are declared.
            $visibility const KEYS: &'static [&'static str] = &[$($key),*];

            $(
                /// The key itself.
                $visibility const $field: &'static str = $key;
            )*
        }
    };
}

impl Text<'_> {
    /// The one of a few words that the text is.
    ///
    /// # Errors
    ///
    /// When it is none of them.
    pub fn choice<T: Choice>(&self) -> Result<T, SourceError> {
        T::of_word(self.as_str()).ok_or_else(|| {
            let words: Vec<&str> = T::ALL.iter().map(|one| one.word()).collect();
            let error = self.error(format!("expected one of `{}`", words.join("`, `")));
            match nearest(self.as_str(), words) {
                Some(near) => error.help(format!("did you mean `{near}`?")),
                None => error,
            }
        })
    }
}

impl Table<'_> {
    /// The word of `key`, one of a few.
    ///
    /// # Errors
    ///
    /// When something else is there.
    pub fn choice<T: Choice>(self, key: &str) -> Result<Option<T>, SourceError> {
        self.get(key).map(|value: Value<'_>| value.text()?.choice()).transpose()
    }
}

pub(crate) use {choice, keys};
