//! The only error of this module: a text, where it goes wrong, and what was expected there.
//!
//! People see these errors, and logs keep them. So they never hold a password, and escape characters that
//! would move a terminal's cursor or reverse its text.

use std::fmt;
use std::ops::Range as Span;

use mu_provider::is_plain_key;
use unicode_width::UnicodeWidthChar;

/// How many columns of a long text are shown before and after the offending character.
const CONTEXT: usize = 60;
/// What is shown in the place of a secret.
const HIDDEN: &str = "****";
/// What is shown in the place of a password, up to the host.
const HIDDEN_BEFORE_HOST: &str = "****@";

/// A text that is not a reference, name, version or range.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is not a valid {}: {}", self.shown().text, self.0.subject, self.message())]
pub struct ReferenceError(Box<Details>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Details {
    subject: &'static str,
    text: String,
    span: Span<usize>,
    expected: &'static str,
}

/// Where a parser gave up, before it is known in which text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    at: usize,
    expected: &'static str,
}

impl Fault {
    pub(super) fn new(at: usize, expected: &'static str) -> Self {
        Self { at, expected }
    }

    /// Where it is.
    pub(super) fn at(self) -> usize {
        self.at
    }

    /// What was expected there.
    pub(super) fn expected(self) -> &'static str {
        self.expected
    }

    /// This fault, if something else is expected instead of `one`.
    pub(super) fn expecting(self, one: &'static str, other: &'static str) -> Self {
        Self { expected: if self.expected == one { other } else { self.expected }, ..self }
    }

    /// This fault, as seen from a text with `bytes` more before it.
    pub(super) fn shifted(self, bytes: usize) -> Self {
        Self { at: self.at + bytes, ..self }
    }
}

impl ReferenceError {
    pub(super) fn new(subject: &'static str, text: &str, fault: Fault) -> Self {
        let (text, at) = without_secrets(text, fault.at);
        let offending = text[at..].chars().next().map_or(0, char::len_utf8);
        let span = at..at + offending;
        Self(Box::new(Details { subject, text, span, expected: fault.expected }))
    }

    /// The text, without the password that it may have held.
    pub fn text(&self) -> &str {
        &self.0.text
    }

    /// The bytes of the first offending character in [`Self::text`]; empty at its end.
    pub fn span(&self) -> Span<usize> {
        self.0.span.clone()
    }

    /// What was expected at [`Self::span`].
    pub fn expected(&self) -> &str {
        self.0.expected
    }

    /// What is wrong, without the text itself: ``expected a name, found `/` ``.
    pub fn message(&self) -> String {
        match self.0.text[self.0.span.clone()].chars().next() {
            // What is hidden is not shown as something else.
            Some(_) if self.0.text[self.0.span.start..].starts_with(HIDDEN) => {
                format!("expected {}", self.0.expected)
            }
            Some(character) => {
                format!("expected {}, found `{}`", self.0.expected, Escaped(character))
            }
            None => format!("expected {}, found the end", self.0.expected),
        }
    }

    /// Whether the text was to be a reference, and all of it is known but who connects: no password was hidden anywhere else in it.
    pub(super) fn is_of_whole_reference(&self) -> bool {
        let text = &self.0.text;
        let hidden = usize::from(text.contains(HIDDEN_BEFORE_HOST));
        // What another tool's query says besides a version has no place in a reference.
        let in_query = text.matches("=****").count() + text.matches("?****").count();
        self.0.subject == "reference" && text.matches(HIDDEN).count() == hidden + in_query
    }

    /// What to write instead, if that is known: for a catalog of operators in an image can only be a registry, because its tag has no
    /// place in a reference.
    pub fn help(&self) -> Option<String> {
        const SCHEME: &str = "olm+oci://";
        let scheme = self.0.text.get(..SCHEME.len()).filter(|it| it.eq_ignore_ascii_case(SCHEME));
        let rest = self.0.text.get(SCHEME.len()..).filter(|_| scheme.is_some())?;
        if self.0.text.contains(HIDDEN_BEFORE_HOST) {
            // What looks like a password is not known any more.
            return Some(format!(
                "write into the settings `registries: {{operators.example/: \"{SCHEME}HOST/REPOSITORY@sha256:DIGEST\"}}`, and here `operators.example/NAME`"
            ));
        }
        let (place, version) = rest.split_at(rest.find('#').unwrap_or(rest.len()));
        // A tag or digest is at the end of the image; without one, the last segment is the operator.
        let host = place.find('/')?;
        let (path, mark, name) = match place[host..].find([':', '@']) {
            Some(at) => {
                let (path, rest) = place.split_at(host + at);
                let (mark, name) = rest.split_once('/').unwrap_or((rest, ""));
                (path, mark, name)
            }
            None => {
                let (path, name) = place.rsplit_once('/')?;
                (path, "", name)
            }
        };
        let name = if name.is_empty() { "NAME" } else { name };
        Some(format!(
            "write into the settings `registries: {{{path}/: \"{SCHEME}{path}{mark}\"}}`, and here `{path}/{name}{version}`"
        ))
    }

    /// The sentence that the text is wrong, without the place and the reason: `` `bad ref` is not a valid
    /// reference ``.
    pub fn headline(&self) -> String {
        format!("`{}` is not a valid {}", self.shown().text, self.0.subject)
    }

    /// Two lines: the text, and a caret under its first offending character with what was expected.
    pub fn render(&self) -> String {
        let Shown { text, column } = self.shown();
        format!("{text}\n{:column$}^ {}", "", self.message())
    }

    fn shown(&self) -> Shown {
        let (before, after) = self.0.text.split_at(self.0.span.start);
        let mut start = String::new();
        let mut column = 0;
        let total: usize = before.chars().map(|character| Escaped(character).width()).sum();
        let mut skip = total.saturating_sub(CONTEXT);
        if skip > 0 {
            start.push('…');
            column += 1;
        }
        for character in before.chars().map(Escaped) {
            if skip > 0 {
                skip = skip.saturating_sub(character.width());
                continue;
            }
            column += character.width();
            start.push_str(&character.to_string());
        }
        let mut room = CONTEXT;
        for character in after.chars().map(Escaped) {
            if room < character.width() {
                start.push('…');
                break;
            }
            room -= character.width();
            start.push_str(&character.to_string());
        }
        Shown { text: start, column }
    }
}

/// A text as it is shown, and the column of its first offending character.
struct Shown {
    text: String,
    column: usize,
}

/// A character that prints as itself if that is harmless.
struct Escaped(char);

impl Escaped {
    fn width(&self) -> usize {
        if is_harmful(self.0) {
            return self.0.escape_default().len();
        }
        self.0.width().unwrap_or(0)
    }
}

impl fmt::Display for Escaped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_harmful(self.0) {
            return fmt::Display::fmt(&self.0.escape_default(), formatter);
        }
        fmt::Display::fmt(&self.0, formatter)
    }
}

/// Whether a character could reverse, hide or overwrite what a terminal shows.
pub(crate) fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// The text with stars in place of whatever could be a password or a token, and the new position of `at`.
///
/// It hides too much rather than too little: a secret may itself hold `/`, `#` or `@`.
fn without_secrets(text: &str, at: usize) -> (String, usize) {
    let at = at.min(text.len());
    let mut secrets: Vec<Span<usize>> =
        secret_user(text).into_iter().chain(secret_values(text)).collect();
    secrets.sort_by_key(|secret| secret.start);
    let (mut shown, mut end, mut moved) = (String::with_capacity(text.len()), 0, at);
    for secret in secrets {
        if secret.start < end {
            // It begins in what is hidden already, so all of both is.
            end = end.max(secret.end);
            continue;
        }
        shown.push_str(&text[end..secret.start]);
        if at >= secret.start {
            moved = shown.len();
        }
        shown.push_str(HIDDEN);
        end = secret.end;
        if at >= end {
            moved = shown.len() + at - end;
        }
    }
    shown.push_str(&text[end..]);
    let moved = moved.min(shown.len());
    (shown, moved)
}

/// The password in front of a host, or the user who may be a token.
fn secret_user(text: &str) -> Option<Span<usize>> {
    let authority = text.find("://").map_or(0, |colon| colon + "://".len());
    let password = text[authority..].find(':').map(|colon| authority + colon + 1);
    let end = text.rfind('@');
    // Behind a port and a path, the `@` of a digest is not that of a password.
    let has_port =
        password.and_then(|colon| text[colon..].split_once('/')).is_some_and(|(port, _)| {
            !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
        });
    let end = match end.filter(|at| has_port && text[at + 1..].starts_with("sha256:")) {
        Some(digest) => text[..digest].rfind('@'),
        None => end,
    };
    let user = text[authority..].split(['/', '#']).next().and_then(|host| host.split_once('@'));
    let scheme = text[..authority].to_ascii_lowercase();
    let is_token = ["http://", "https://"].iter().any(|end| scheme.ends_with(end))
        && user.is_some_and(|(user, _)| user != "git");
    let secret = if is_token { Some(authority) } else { password };
    let (secret, end) = (secret?, end?);
    (secret <= end).then_some(secret..end)
}

/// The values behind a `?` or a `#`, `?token=…&sig=…`, except those that tools write which say a version or a folder.
fn secret_values(text: &str) -> Vec<Span<usize>> {
    let mut secrets = Vec::new();
    let Some(mut start) = text.find(['?', '#']) else { return secrets };
    loop {
        let is_query = text[start..].starts_with('?');
        let part = start + 1;
        let end = text[part..].find(['?', '#', '&']).map_or(text.len(), |next| part + next);
        let said = &text[part..end];
        let is_word = |key: &str| {
            key.starts_with(|first: char| first.is_ascii_alphabetic())
                && key.chars().all(|one| one.is_ascii_alphanumeric() || "-_.[]%".contains(one))
        };
        let value = match said.split_once('=') {
            Some((key, _)) if is_word(key) => (!is_plain_key(key)).then_some(part + key.len() + 1),
            // A query without names may be a token as a whole.
            _ => (is_query && text.contains("://")).then_some(part),
        };
        let next = if let Some(value) = value {
            // A token may hold what begins a fragment, but not what begins another value.
            let end = text[part..].find('&').map_or(text.len(), |next| part + next);
            if value < end {
                secrets.push(value..end);
            }
            end
        } else {
            end
        };
        if next == text.len() {
            return secrets;
        }
        start = next;
    }
}
