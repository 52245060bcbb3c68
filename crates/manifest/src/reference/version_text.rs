//! Reads version numbers, prereleases and build metadata, and knows where a version ends in a text.

use semver::{BuildMetadata, Prerelease, Version};

use super::error::{Fault, is_harmful};

/// Longer versions are somebody's mistake or attack.
const MAX_LENGTH: usize = 256;

const NUMBER: &str = "a number";
const NO_LEADING_ZERO: &str = "a number without leading zeros";
const SMALLER_NUMBER: &str = "a number below 18446744073709551615";
const THREE_NUMBERS: &str = "`.`, because a version has three numbers";
const VERSION_END: &str = "the end, `-` and a prerelease, or `+` and build metadata";
const TOO_LONG: &str = "a version of at most 256 characters";
const IDENTIFIER: &str = "letters, digits or `-`";
const WORDS: &str =
    "a version, or words without `/`, `\\\\` and other characters that a file name cannot have";

/// The current position in a text.
pub(super) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    pub(super) fn eat(&mut self, token: &str) -> bool {
        let found = self.rest().starts_with(token);
        if found {
            self.at += token.len();
        }
        found
    }

    /// Skips spaces and tabs, and returns whether there were any.
    pub(super) fn blanks(&mut self) -> bool {
        let start = self.at;
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        self.at > start
    }

    pub(super) fn fault_at_cursor(&self, expected: &'static str) -> Fault {
        Fault::new(self.at, expected)
    }

    pub(super) fn number(&mut self) -> Result<u64, Fault> {
        let start = self.at;
        let number = self.number_with_zeros()?;
        if self.text.as_bytes().get(start) == Some(&b'0') && self.at > start + 1 {
            return Err(Fault::new(start, NO_LEADING_ZERO));
        }
        Ok(number)
    }

    fn number_with_zeros(&mut self) -> Result<u64, Fault> {
        let start = self.at;
        let mut number = 0_u64;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number
                .checked_mul(10)
                .and_then(|number| number.checked_add(u64::from(digit - b'0')))
                // The largest number has no successor, which the upper bound of a range may need.
                .filter(|number| *number < u64::MAX)
                .ok_or(Fault::new(start, SMALLER_NUMBER))?;
            self.at += 1;
        }
        if self.at == start { Err(self.fault_at_cursor(NUMBER)) } else { Ok(number) }
    }

    /// `-rc.1`, if it is there.
    pub(super) fn prerelease(&mut self) -> Result<Prerelease, Fault> {
        if !self.eat("-") {
            return Ok(Prerelease::EMPTY);
        }
        let start = self.at;
        self.identifiers(true)?;
        Prerelease::new(&self.text[start..self.at]).map_err(|_| Fault::new(start, IDENTIFIER))
    }

    /// `+b5`, if it is there.
    pub(super) fn build(&mut self) -> Result<BuildMetadata, Fault> {
        if !self.eat("+") {
            return Ok(BuildMetadata::EMPTY);
        }
        let start = self.at;
        self.identifiers(false)?;
        BuildMetadata::new(&self.text[start..self.at]).map_err(|_| Fault::new(start, IDENTIFIER))
    }

    fn identifiers(&mut self, numbers_are_plain: bool) -> Result<(), Fault> {
        loop {
            let start = self.at;
            while matches!(self.peek(), Some(b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' | b'-')) {
                self.at += 1;
            }
            let identifier = &self.text[start..self.at];
            if identifier.is_empty() {
                return Err(self.fault_at_cursor(IDENTIFIER));
            }
            let is_number = identifier.bytes().all(|byte| byte.is_ascii_digit());
            if numbers_are_plain && is_number && identifier.len() > 1 && identifier.starts_with('0')
            {
                return Err(Fault::new(start, NO_LEADING_ZERO));
            }
            if !self.eat(".") {
                return Ok(());
            }
        }
    }
}

/// A version with all its numbers, with or without a `v`.
pub(super) fn strict(text: &str) -> Result<Version, Fault> {
    let mut cursor = start(text)?;
    let major = cursor.number()?;
    let minor = cursor.next_number()?;
    let patch = cursor.next_number()?;
    finish(cursor, [major, minor, patch])
}

/// A version whose last numbers may be missing; they are 0 then.
pub(super) fn lenient(text: &str) -> Result<Version, Fault> {
    let mut cursor = start(text)?;
    let mut numbers = [cursor.number_with_zeros()?, 0, 0];
    for number in &mut numbers[1..] {
        if cursor.eat(".") {
            *number = cursor.number_with_zeros()?;
        }
    }
    finish(cursor, numbers)
}

/// Text in place of a version, as apps have it: `Bookworm 12`. It can be a part of a file's name.
pub(super) fn words(text: &str) -> Result<(), Fault> {
    let is_unfit = |character: char| {
        character.is_control() || is_harmful(character) || r#"/\<>:"|?*#"#.contains(character)
    };
    if text.len() > MAX_LENGTH {
        return Err(Fault::new(text.floor_char_boundary(MAX_LENGTH), TOO_LONG));
    }
    match text.find(is_unfit) {
        Some(at) => Err(Fault::new(at, WORDS)),
        None if text.is_empty() || text.starts_with('.') || text.trim() != text => {
            Err(Fault::new(0, WORDS))
        }
        None => Ok(()),
    }
}

fn start(text: &str) -> Result<Cursor<'_>, Fault> {
    if text.len() > MAX_LENGTH {
        return Err(Fault::new(text.floor_char_boundary(MAX_LENGTH), TOO_LONG));
    }
    let mut cursor = Cursor::new(text);
    cursor.eat("v");
    Ok(cursor)
}

fn finish(mut cursor: Cursor<'_>, [major, minor, patch]: [u64; 3]) -> Result<Version, Fault> {
    let pre = cursor.prerelease()?;
    let build = cursor.build()?;
    if cursor.is_at_end() {
        return Ok(Version { major, minor, patch, pre, build });
    }
    Err(cursor.fault_at_cursor(VERSION_END))
}

impl Cursor<'_> {
    fn next_number(&mut self) -> Result<u64, Fault> {
        if !self.eat(".") {
            return Err(self.fault_at_cursor(THREE_NUMBERS));
        }
        self.number()
    }
}
