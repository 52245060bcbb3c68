//! The error that all providers return, why a tree is refused, and how much of a message is shown: what others wrote may be of
//! any length, and a person reads no more than a screen.
//!
//! The kind decides how the caller reacts (try elsewhere, retry later, give up) and becomes the code that users see. The text
//! says what was tried, and where. There are no variants for protocol details on purpose.

use std::borrow::Cow;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use std::{fmt, io};

/// An error, what caused it, what caused that, and so on.
pub fn causes<'e>(
    error: &'e (dyn Error + 'static),
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// An error with its causes, in one line.
pub fn with_causes(error: &(dyn Error + 'static)) -> String {
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    texts.join(": ")
}

/// What went wrong, as far as a caller can react to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The place answered, and it has no such package, version, tag or commit.
    NotFound,
    /// The place could not be reached, the connection was lost, or it answered with a server error.
    Network,
    /// The place requires credentials, or refused the given ones.
    Auth,
    /// The content is not the expected one, or breaks the rules for hostile content.
    Integrity,
    /// The network was needed, and `--offline` forbids it.
    Offline,
    /// The place answered with something that is not its protocol.
    Protocol,
    /// The request was refused before anything was sent, such as plain http to another machine.
    Refused,
    /// The manifest that was found cannot be read.
    Manifest,
    /// A plugin broke the protocol, was silent, or died.
    Plugin,
    /// A file on this machine could not be read or written.
    Io,
}

/// The value, or `None` if it failed with an error of this kind, which is an answer there.
///
/// # Errors
///
/// Any other error.
pub fn none_if<T>(
    result: Result<T, ProviderError>,
    kind: ErrorKind,
) -> Result<Option<T>, ProviderError> {
    match result {
        Err(error) if error.kind() == kind => Ok(None),
        result => result.map(Some),
    }
}

/// A failure of a provider: what was tried and where, the reason, and what to do next.
#[derive(Debug, Clone)]
pub struct ProviderError {
    kind: ErrorKind,
    message: String,
    hints: Vec<String>,
    is_without_tls: bool,
    is_late: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ProviderError {
    /// Creates an error with a message: in lower case, without a full stop, naming the URL or path; as
    /// [`brief`] as a person reads it.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        let message = brief(&message.into()).into_owned();
        let (hints, is_without_tls, is_late) = (Vec::new(), false, false);
        Self { kind, message, hints, is_without_tls, is_late, source: None }
    }

    /// Adds the reason.
    #[must_use]
    pub fn because(mut self, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        self.source = Some(Arc::from(source.into()));
        self
    }

    /// Adds one thing that the user can do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }

    /// Hints at this one thing, in place of what was said before.
    #[must_use]
    pub fn hint_instead(mut self, hint: impl Into<String>) -> Self {
        self.hints = vec![hint.into()];
        self
    }

    /// Says that the server did not answer with TLS, and so perhaps speaks plain http.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn without_tls(mut self) -> Self {
        self.is_without_tls = true;
        self
    }

    /// Says that the server kept silent for longer than it may.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn late(mut self) -> Self {
        self.is_late = true;
        self
    }

    /// Adds that this many attempts in this time failed.
    #[cfg(feature = "http")]
    #[must_use]
    pub(crate) fn after(mut self, attempts: usize, time: std::time::Duration) -> Self {
        if attempts > 1 {
            let seconds = time.as_secs_f32();
            let gave_up = format!(" (gave up after {attempts} attempts in {seconds:.1} s)");
            self.message.push_str(&gave_up);
        }
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Whether the server did not answer with TLS, and so perhaps speaks plain http.
    pub fn is_without_tls(&self) -> bool {
        self.is_without_tls
    }

    /// Whether the server kept silent for longer than it may.
    pub fn is_late(&self) -> bool {
        self.is_late
    }

    /// What the user can do about it.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }
}

impl fmt::Display for ProviderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl Error for ProviderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<TreeError> for ProviderError {
    fn from(error: TreeError) -> Self {
        let kind = if error.is_io() { ErrorKind::Io } else { ErrorKind::Integrity };
        let failed = Self::new(kind, error.to_string());
        match error.source() {
            Some(cause) => failed.because(cause.to_string()),
            None => failed,
        }
    }
}

/// The longest part that a message quotes, and the longest word in it, in characters.
const LONGEST_PART: usize = 400;

/// The longest message, in characters.
const LONGEST_MESSAGE: usize = 4_000;

/// How many lines a message has at most.
const MOST_LINES: usize = 80;

/// What follows the names of some, if there are `count` others; empty if there are none.
pub fn and_more(count: usize) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}

/// A message of bounded length. The middle is left out of each long part in back-ticks and of each long word, of many lines, and then
/// of the message itself.
pub fn brief(text: &str) -> Cow<'_, str> {
    // What is shorter has no long part.
    if text.len() <= LONGEST_PART {
        return Cow::Borrowed(text);
    }
    let mut parts = String::new();
    for (number, part) in text.split('`').enumerate() {
        if number > 0 {
            parts.push('`');
        }
        match number % 2 {
            1 => parts.push_str(&without_middle(part, LONGEST_PART)),
            _ => part.split_inclusive(char::is_whitespace).for_each(|word| {
                parts.push_str(&without_middle(word, LONGEST_PART));
            }),
        }
    }
    let lines: Vec<&str> = parts.lines().collect();
    if lines.len() > MOST_LINES {
        let (begin, rest) = lines.split_at(MOST_LINES * 3 / 4);
        let (left_out, end) = rest.split_at(rest.len() - MOST_LINES / 4);
        let left_out = format!("… {} more lines …", left_out.len());
        parts = [begin, &[&left_out], end].concat().join("\n");
    }
    Cow::Owned(without_middle(&parts, LONGEST_MESSAGE).into_owned())
}

/// A text of at most about `most` characters: three quarters of them from its beginning, the others from its end.
fn without_middle(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let mut begin = text.char_indices().map(|(at, _)| at).skip(most * 3 / 4);
    let mut end = text.char_indices().map(|(at, _)| at).rev().skip(most / 4 - 1);
    match (begin.next(), end.next()) {
        (Some(begin), Some(end)) if begin < end => {
            let (begin, end) = (text.get(..begin), text.get(end..));
            Cow::Owned(format!("{} … {}", begin.unwrap_or_default(), end.unwrap_or_default()))
        }
        _ => Cow::Borrowed(text),
    }
}

/// Why a tree was refused, or could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A path that may not be in a package.
    #[error("`{path}` is refused: {reason}")]
    Path {
        /// The path, escaped.
        path: String,
        /// The problem.
        reason: &'static str,
    },
    /// Two paths that would be one file on some file systems.
    #[error(
        "`{first}` and `{second}` are refused: they differ only in case or Unicode form, or one is inside the other"
    )]
    Collision {
        /// The earlier path.
        first: String,
        /// The later one.
        second: String,
    },
    /// A symbolic link that leads out of the package.
    #[error("the link `{path}` to `{target}` is refused: {reason}")]
    Link {
        /// The link, escaped.
        path: String,
        /// Its target, escaped.
        target: String,
        /// The problem.
        reason: &'static str,
    },
    /// An entry that is neither file, folder nor symbolic link.
    #[error("`{path}` is refused: it is {what}")]
    Kind {
        /// The path, escaped.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// More than is accepted.
    #[error("{what} is over the limit of {limit}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much is accepted.
        limit: u64,
    },
    /// A path that is too long, or in too many folders.
    #[error("the {what} of the path that begins with `{start}` is over the limit of {limit}")]
    PathLimit {
        /// What there is too much of.
        what: &'static str,
        /// The beginning of the path, escaped.
        start: String,
        /// How much is accepted.
        limit: u64,
    },
    /// The content broke off or could not be read.
    #[error("cannot read the content of `{path}`")]
    Content {
        /// The entry, escaped.
        path: String,
        /// The reason.
        source: io::Error,
    },
    /// The disk refused.
    #[error("cannot write `{}`", path.display())]
    Io {
        /// The file on disk.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
}

impl TreeError {
    /// Whether this machine's disk is to blame, not the content.
    pub fn is_io(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_person_reads_stays_as_it_is() {
        for text in ["", "cannot read `x`", &"a word of `many` ".repeat(200)] {
            assert_eq!(brief(text), text);
        }
    }

    #[test]
    fn long_parts_words_and_lists_are_cut_in_their_middle() {
        let range = (0..20_000).map(|n| format!(">=1.{n}.0")).collect::<Vec<_>>().join(" || ");
        let text = format!("the range `{range}` of `web` has too many parts");
        let cut = brief(&text);
        assert!(cut.starts_with("the range `>=1.0.0 || ") && cut.contains(" … "), "{cut}");
        assert!(cut.ends_with(">=1.19999.0` of `web` has too many parts"), "{cut}");
        assert!(cut.chars().count() < 500, "{}", cut.chars().count());
        let word = brief(&"ä".repeat(900_000)).into_owned();
        assert!(word.chars().count() <= LONGEST_PART + 3, "{}", word.chars().count());
        let names: Vec<String> = (0..40_000).map(|n| format!("`web/{n}`")).collect();
        let list = brief(&names.join(", ")).into_owned();
        assert!(list.chars().count() <= LONGEST_MESSAGE + 3 && list.ends_with("`web/39999`"));
        let lines = brief(&names.join("\n")).into_owned();
        assert_eq!(lines.lines().count(), MOST_LINES + 1);
        assert!(lines.contains("… 39920 more lines …") && lines.ends_with("`web/39999`"));
    }
}
