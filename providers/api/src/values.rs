//! How many values a text of JSON has, before anything is made of it: two bytes of text can become a hundred of memory.

/// The most values that one document may have.
pub const MOST_VALUES: usize = 4_000_000;

/// Whether JSON has no more than `most` values, keys included. It counts what separates them, and also takes what is no JSON.
pub fn has_few_values(json: &[u8], most: usize) -> bool {
    let (mut count, mut is_text, mut is_escaped) = (1_usize, false, false);
    for byte in json {
        match (byte, is_text) {
            _ if is_escaped => is_escaped = false,
            (b'\\', true) => is_escaped = true,
            (b'"', _) => is_text = !is_text,
            (b',' | b':' | b'[' | b'{', false) => count += 1,
            _ => {}
        }
    }
    count <= most
}

#[cfg(test)]
mod tests {
    use super::has_few_values;

    #[test]
    fn separators_count_unless_they_are_in_a_text() {
        for (json, count) in [
            ("", 1),
            ("[0,0,0]", 4),
            (r#"{"a": [1], "b": {}}"#, 7),
            (r#""a,b:[{\",,""#, 1),
            (r#"["\\",1]"#, 3),
        ] {
            let has_few = |most| has_few_values(json.as_bytes(), most);
            assert!(has_few(count) && !has_few(count - 1), "{json}");
        }
    }
}
