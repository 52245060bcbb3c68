//! Writes new values as text, quoted only if the format demands it, or as their neighbours are.
//!
//! To find out whether a text needs quotes, this reads the text back; there are no separate rules.

use std::path::Path;

use super::node::{Kind, Node, ScalarNotation, is_bool, is_number};
use super::{Document, FileSyntax};

/// A value that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum New {
    /// A text.
    Text(String),
    /// `true` or `false`.
    Flag(bool),
    /// A list of texts on one line.
    List(Vec<String>),
    /// A map on one line.
    Table(Vec<(&'static str, New)>),
    /// A map, with each key on a separate line if possible.
    Lines(Vec<(&'static str, New)>),
}

/// How and where a value is to be written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) format: FileSyntax,
    /// Whether it is inside brackets, where more characters need quotes.
    pub(crate) flow: bool,
    /// The quotes that its neighbours have.
    pub(crate) style: ScalarNotation,
}

impl New {
    /// The value on one line, except for [`New::Lines`], whose lines are not indented.
    pub(crate) fn render(&self, manner: Manner) -> String {
        match self {
            Self::Text(text) => render_text(text, manner),
            Self::Flag(flag) => flag.to_string(),
            Self::List(texts) => {
                let inside = Manner { flow: true, style: ScalarNotation::Plain, ..manner };
                let texts = texts.iter().map(|text| render_text(text, inside));
                format!("[{}]", texts.collect::<Vec<_>>().join(", "))
            }
            Self::Table(pairs) | Self::Lines(pairs) => {
                let can_break = !manner.flow && manner.format == FileSyntax::Yaml;
                let flow = !(can_break && matches!(self, Self::Lines(_)));
                let inside = Manner { flow, style: ScalarNotation::Plain, ..manner };
                let pairs = pairs.iter().map(|(key, value)| {
                    format!("{}: {}", render_key(key, inside), value.render(inside))
                });
                let pairs: Vec<String> = pairs.collect();
                if flow { format!("{{{}}}", pairs.join(", ")) } else { pairs.join("\n") }
            }
        }
    }
}

/// A text as a value.
pub(crate) fn render_text(text: &str, manner: Manner) -> String {
    let fits_single = !text.contains(|character: char| character.is_control());
    match (manner.format, manner.style) {
        (FileSyntax::Yaml, ScalarNotation::SingleQuoted) if fits_single => {
            format!("'{}'", text.replace('\'', "''"))
        }
        (FileSyntax::Yaml, ScalarNotation::Plain | ScalarNotation::Block)
            if reads_back(text, manner.flow) =>
        {
            text.to_owned()
        }
        _ => quoted(text),
    }
}

/// A text as a key.
pub(crate) fn render_key(text: &str, manner: Manner) -> String {
    let plain = manner.format == FileSyntax::Yaml && reads_back(text, true);
    if plain { text.to_owned() } else { quoted(text) }
}

/// Whether this and any other YAML reader reads an unquoted text as the same text.
fn reads_back(text: &str, flow: bool) -> bool {
    let other_meaning = is_number(text)
        || is_bool(text)
        || matches!(
            &*text.to_ascii_lowercase(),
            "" | "~" | "null" | "yes" | "no" | "on" | "off" | "y" | "n"
        );
    if other_meaning || text.contains(|character: char| character.is_control()) {
        return false;
    }
    let line = if flow { format!("[{text}]") } else { format!("- {text}") };
    let Ok(document) = Document::read(Path::new(""), &line) else { return false };
    let is_it = |item: &Node<'_>| matches!(&item.kind, Kind::Scalar { text: read, style: ScalarNotation::Plain } if read == text);
    match &document.node().kind {
        Kind::List { items, .. } => matches!(items.as_slice(), [item] if is_it(item)),
        _ => false,
    }
}

/// A text in double quotes, as YAML and JSON both read it.
pub fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("text is always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, block: &str, flow: &str) {
        let manner = Manner { format: FileSyntax::Yaml, flow: false, style: ScalarNotation::Plain };
        assert_eq!(render_text(text, manner), block);
        assert_eq!(render_text(text, Manner { flow: true, ..manner }), flow);
        assert_eq!(render_text(text, Manner { format: FileSyntax::Json, ..manner }), quoted(text));
    }

    #[test]
    fn quotes_stand_only_where_they_must() {
        check("aws#^1.0.6", "aws#^1.0.6", "aws#^1.0.6");
        check(
            "https://hub.mu.com/aws#^1",
            "https://hub.mu.com/aws#^1",
            "https://hub.mu.com/aws#^1",
        );
        check("a#>1, <=3", "a#>1, <=3", "\"a#>1, <=3\"");
        check("a #b", "\"a #b\"", "\"a #b\"");
        check("^1.0", "^1.0", "^1.0");
        check("~1.5", "~1.5", "~1.5");
        check(">=1.2 <2", "\">=1.2 <2\"", "\">=1.2 <2\"");
        check("*", "\"*\"", "\"*\"");
        check("1.2", "\"1.2\"", "\"1.2\"");
        check("1.2.3", "1.2.3", "1.2.3");
        check("no", "\"no\"", "\"no\"");
        check("", "\"\"", "\"\"");
        check("a\tb", "\"a\\tb\"", "\"a\\tb\"");
        check("./x", "./x", "./x");
    }

    #[test]
    fn neighbours_set_the_style() {
        let manner =
            Manner { format: FileSyntax::Yaml, flow: false, style: ScalarNotation::SingleQuoted };
        assert_eq!(render_text("it's", manner), "'it''s'");
        assert_eq!(
            render_text("a", Manner { style: ScalarNotation::DoubleQuoted, ..manner }),
            "\"a\""
        );
        let table =
            New::Table(vec![("ref", New::Text("a#1".into())), ("prerelease", New::Flag(true))]);
        assert_eq!(table.render(manner), "{ref: a#1, prerelease: true}");
        let json = Manner { format: FileSyntax::Json, ..manner };
        assert_eq!(table.render(json), "{\"ref\": \"a#1\", \"prerelease\": true}");
    }
}
