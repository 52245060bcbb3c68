//! One line of a lock, as mu writes it: a key with a text or a list of texts.
//!
//! Any other form is not read here, even if it is the same YAML.

/// Adds a line to the text of a lock.
pub(super) fn print(text: &mut String, indent: &str, key: &str, value: &str) {
    for part in [indent, key, ": ", value, "\n"] {
        text.push_str(part);
    }
}

/// The items of a list on one line; `None` if there are none.
pub(super) fn print_list(items: &[String]) -> Option<String> {
    let items: Vec<String> = items.iter().map(|item| print_text(item)).collect();
    (!items.is_empty()).then(|| format!("[{}]", items.join(", ")))
}

/// A YAML scalar: plain if every YAML reader reads it as exactly this string, else double-quoted.
pub(super) fn print_text(value: &str) -> String {
    let safe =
        |character: char| character.is_ascii_alphanumeric() || "/.+-_:#^~@".contains(character);
    // A leading letter and a slash or two digits' dots keep it from being a number, date or word.
    let plain = value.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '.')
        && value.chars().all(safe)
        && !value.ends_with(':')
        && (value.contains('/') || value.starts_with("workspace+") || is_version_or_digest(value));
    if plain {
        return value.to_owned();
    }
    let mut quoted = String::with_capacity(value.len() + 2);
    quoted.push('"');
    for character in value.chars() {
        match character {
            '"' | '\\' => {
                quoted.push('\\');
                quoted.push(character);
            }
            _ if is_odd(character) => {
                quoted.push_str(&format!("\\U{:08X}", u32::from(character)));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character breaks a line for some reader, or is not text.
pub(super) fn is_odd(character: char) -> bool {
    let is_odd =
        matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}');
    is_odd || character.is_control()
}

fn is_version_or_digest(value: &str) -> bool {
    value.starts_with("h1:")
        || value.starts_with("sha256:")
        || matches!(value, "highest" | "minimal" | "composite")
        || (value.matches('.').count() >= 2
            && value.starts_with(|first: char| first.is_ascii_digit()))
        || (value.len() == 40 && value.contains(|c: char| c.is_ascii_lowercase() && c != 'e'))
}

/// The key of a line without its indent, and its value.
pub(super) fn split(line: &str) -> Option<(&str, &str)> {
    // A key is a few bytes, which a loop passes faster than a search for a character begins.
    let (key, value) = line.split_at_checked(line.bytes().position(|byte| byte == b':')?)?;
    let value = value.strip_prefix(':')?;
    let value = if value.is_empty() { value } else { value.strip_prefix(' ')? };
    let is_key = key.bytes().all(|byte| byte.is_ascii_alphabetic());
    (is_key && !value.starts_with(' ')).then_some((key, value))
}

/// The items of a list on one line, each in one of the two forms of [`read_text`].
pub(super) fn read_list(text: &str) -> Option<Vec<String>> {
    let mut rest = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut items = Vec::new();
    while !rest.is_empty() {
        let end = match rest.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => rest.find(", ").unwrap_or(rest.len()),
        };
        let (item, others) = rest.split_at_checked(end)?;
        items.push(read_text(item)?);
        rest = others;
        if !rest.is_empty() {
            rest = rest.strip_prefix(", ").filter(|rest| !rest.is_empty())?;
        }
    }
    Some(items)
}

/// The value of a scalar in one of the two forms that mu writes without surprises.
pub(super) fn read_text(text: &str) -> Option<String> {
    if let Some(quoted) = text.strip_prefix('"') {
        let inner = quoted.strip_suffix('"')?;
        let is_special = |character| matches!(character, '\\' | '"') || is_odd(character);
        return (!inner.contains(is_special)).then(|| inner.to_owned());
    }
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '.')
        && !text.bytes().any(is_special)
        // It would be a key, or nothing.
        && !text.ends_with(':')
        && !text.eq_ignore_ascii_case("null");
    is_plain.then(|| text.to_owned())
}

/// Whether a value without quotes must not contain a byte. As a table, because every byte of every lock is looked up.
#[expect(clippy::indexing_slicing, reason = "the table has a place for every byte")]
const SPECIAL: [bool; 256] = {
    let (mut table, mut byte) = ([false; 256], 0);
    while byte < 256 {
        let letter = byte as u8;
        table[byte] = !letter.is_ascii_graphic()
            || matches!(letter, b'"' | b'\'' | b'[' | b']' | b'{' | b'}' | b',' | b'&' | b'*')
            || matches!(letter, b'!' | b'|' | b'>' | b'%' | b'`');
        byte += 1;
    }
    table
};

#[expect(clippy::indexing_slicing, reason = "the table has a place for every byte")]
fn is_special(byte: u8) -> bool {
    SPECIAL[usize::from(byte)]
}
