//! Small texts for people.

/// An indented line for each text; of many, only for the first `most`, and how many more there are.
pub(crate) fn lines(texts: &[String], most: usize) -> String {
    let mut lines: String = texts.iter().take(most).map(|text| format!("\n  {text}")).collect();
    if texts.len() > most {
        lines.push_str(&format!("\n  and {} more", texts.len() - most));
    }
    lines
}

/// `1 package`, `2 packages`.
pub fn count(number: usize, noun: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{ending}")
}
