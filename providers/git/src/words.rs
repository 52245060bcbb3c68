//! Text that a server or repository sent, made fit to be shown.

/// The first few hundred characters, with control characters escaped so that no terminal obeys them.
pub(crate) fn printable(bytes: &[u8]) -> String {
    const LONGEST: usize = 400;
    String::from_utf8_lossy(bytes)
        .trim()
        .chars()
        .take(LONGEST)
        .flat_map(|character| {
            let mut escaped = Vec::new();
            if character.is_control() && character != '\n' {
                escaped.extend(character.escape_unicode());
            } else {
                escaped.push(character);
            }
            escaped
        })
        .collect()
}
