//! Text that a server or repository sent, made fit to be shown.

/// How many characters are shown.
const LONGEST: usize = 400;

/// The first few hundred characters, with control characters escaped so that no terminal obeys them.
pub(crate) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(LONGEST).flat_map(escaped).collect()
}

/// The last lines, as many as fit into a few hundred characters, escaped in the same way.
pub(crate) fn printable_end(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text: String = text.replace("\r\n", "\n").trim().chars().flat_map(escaped).collect();
    let surplus = text.chars().count().saturating_sub(LONGEST);
    if surplus == 0 {
        return text;
    }
    let end: String = text.chars().skip(surplus).collect();
    // The first line is most likely half of one.
    end.split_once('\n').map_or_else(|| end.clone(), |(_, lines)| lines.to_owned())
}

fn escaped(character: char) -> impl Iterator<Item = char> {
    let is_harmful = character.is_control() && character != '\n';
    let escape = is_harmful.then(|| character.escape_unicode());
    escape.into_iter().flatten().chain((!is_harmful).then_some(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_long_words_is_whole_lines() {
        assert_eq!(printable_end(b"one\r\ntwo\x1b\n"), "one\ntwo\\u{1b}");
        let long = format!("{}\nlast line\n", "x".repeat(LONGEST));
        assert_eq!(printable_end(long.as_bytes()), "last line");
        assert_eq!(printable_end("é".repeat(LONGEST + 1).as_bytes()), "é".repeat(LONGEST));
    }
}
