//! Reads JSON text into the same tree as YAML.
//!
//! mu has its own small reader because serde's forgets the positions of keys and values. It accepts exactly
//! RFC 8259: no comments, no trailing commas.

use std::borrow::Cow;

use super::{Entry, Fault, Kind, MAX_DEPTH, Node, Parsed, ScalarNotation, SeenKeys};

pub(super) fn parse(text: &str) -> Result<Parsed<'_>, Fault> {
    let mut reader = Reader { text, at: 0 };
    if text.starts_with('\u{feff}') {
        reader.at = '\u{feff}'.len_utf8();
    }
    reader.skip_space();
    let root = reader.value(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.fault("expected the end of the file"));
    }
    Ok(Parsed { root, comments: Vec::new(), merges: None })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_space(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    /// An error at the next character.
    fn fault(&self, message: &str) -> Fault {
        let width = self.peek().map_or(0, char::len_utf8);
        Fault::new(self.at..self.at + width, format!("this is not JSON: {message}"))
    }

    fn value(&mut self, depth: usize) -> Result<Node<'t>, Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::too_deep(self.at..self.at + 1));
        }
        let start = self.at;
        let kind = match self.peek() {
            Some('{') => self.table(depth)?,
            Some('[') => self.list(depth)?,
            Some('"') => Kind::Scalar { text: self.string()?, style: ScalarNotation::DoubleQuoted },
            _ => self.word()?,
        };
        Ok(Node { span: start..self.at, kind })
    }

    fn word(&mut self) -> Result<Kind<'t>, Fault> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && !"+-.".contains(c));
        let word = &rest[..end.unwrap_or(rest.len())];
        if !(matches!(word, "null" | "true" | "false") || is_json_number(word)) {
            return Err(match (word, self.peek()) {
                ("", Some('/' | '#')) => self.fault("it has no comments"),
                ("", Some('\'')) => self.fault("text must be in double quotes"),
                _ => self.fault("expected a value"),
            });
        }
        self.at += word.len();
        Ok(Kind::Scalar { text: Cow::Borrowed(word), style: ScalarNotation::Plain })
    }

    fn list(&mut self, depth: usize) -> Result<Kind<'t>, Fault> {
        let mut items = Vec::new();
        self.sequence(']', |reader| {
            items.push(reader.value(depth + 1)?);
            Ok(())
        })?;
        Ok(Kind::List { items, flow: true })
    }

    fn table(&mut self, depth: usize) -> Result<Kind<'t>, Fault> {
        let mut entries: Vec<Entry<'t>> = Vec::new();
        let mut seen = SeenKeys::default();
        self.sequence('}', |reader| {
            if reader.peek() != Some('"') {
                return Err(reader.fault("expected a key in double quotes"));
            }
            let start = reader.at;
            let key = reader.string()?;
            let key_span = start..reader.at;
            seen.insert(&key, &key_span)?;
            reader.skip_space();
            if reader.peek() != Some(':') {
                return Err(reader.fault("expected `:`"));
            }
            reader.at += 1;
            reader.skip_space();
            let value = reader.value(depth + 1)?;
            entries.push(Entry { key, key_span, value });
            Ok(())
        })?;
        Ok(Kind::Table { entries, flow: true })
    }

    /// Reads the items between the bracket here and `close`, separated by commas.
    fn sequence(
        &mut self,
        close: char,
        mut item: impl FnMut(&mut Self) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.at += 1;
        self.skip_space();
        if self.peek() == Some(close) {
            self.at += 1;
            return Ok(());
        }
        loop {
            item(self)?;
            self.skip_space();
            match self.peek() {
                Some(',') => self.at += 1,
                Some(found) if found == close => {
                    self.at += 1;
                    return Ok(());
                }
                None => {
                    let fault = self.fault(&format!("expected `,` or `{close}`, found the end"));
                    return Err(fault.help(match close {
                        ']' => "close the list with `]`",
                        _ => "close the object with `}`",
                    }));
                }
                _ => return Err(self.fault(&format!("expected `,` or `{close}`"))),
            }
            self.skip_space();
            if self.peek() == Some(close) {
                let fault = self.fault(&format!("a comma before `{close}`"));
                return Err(fault.help("remove the comma: JSON has none after the last value"));
            }
        }
    }

    fn string(&mut self) -> Result<Cow<'t, str>, Fault> {
        self.at += 1;
        let start = self.at;
        let mut unescaped = String::new();
        let mut run = start;
        loop {
            match self.peek() {
                None => return Err(self.fault("the text is not closed")),
                Some('"') => break,
                Some(character) if u32::from(character) < 0x20 => {
                    return Err(self.fault("a control character in text must be escaped"));
                }
                Some('\\') => {
                    unescaped.push_str(&self.text[run..self.at]);
                    unescaped.push(self.escape()?);
                    run = self.at;
                }
                Some(character) => self.at += character.len_utf8(),
            }
        }
        let end = self.at;
        self.at += 1;
        if run == start {
            return Ok(Cow::Borrowed(&self.text[start..end]));
        }
        unescaped.push_str(&self.text[run..end]);
        Ok(Cow::Owned(unescaped))
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let start = self.at;
        let kind = self.text.as_bytes().get(start + 1).copied();
        self.at += 2;
        let plain = match kind {
            Some(plain @ (b'"' | b'\\' | b'/')) => char::from(plain),
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex().ok_or_else(|| bad_escape(start))?;
                let mut units = vec![first];
                let is_half = (0xd800..0xdc00).contains(&first);
                if is_half && self.text[self.at..].starts_with("\\u") {
                    self.at += 2;
                    units.extend(self.hex());
                }
                let character = char::decode_utf16(units).next().and_then(Result::ok);
                return character.ok_or_else(|| bad_escape(start));
            }
            _ => return Err(bad_escape(start)),
        };
        Ok(plain)
    }

    fn hex(&mut self) -> Option<u16> {
        let digits = self.text.get(self.at..self.at + 4)?;
        if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        self.at += 4;
        u16::from_str_radix(digits, 16).ok()
    }
}

fn bad_escape(start: usize) -> Fault {
    Fault::new(start..start + 1, "this is not JSON: no such escape")
}

fn is_json_number(word: &str) -> bool {
    let are_digits =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = word.strip_prefix('-').unwrap_or(word);
    let (decimal, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((decimal, exponent)) => {
            (decimal, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)))
        }
        None => (unsigned, None),
    };
    let (whole, fraction) = match decimal.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (decimal, None),
    };
    (whole == "0" || !whole.starts_with('0'))
        && [Some(whole), fraction, exponent].into_iter().flatten().all(are_digits)
}
