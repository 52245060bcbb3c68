//! Text that fits a terminal, for people. Programs ask for `--json`.
//!
//! [`Table`] has columns that line up. Smaller texts are counts, sizes, and foreign text made safe for a terminal.
//! Nothing is printed here.

pub use crate::ops::session::shown::count;

use std::borrow::Cow;

use anstyle::Style;
use mu_provider::brief;

/// Rows of cells under a heading.
#[derive(Debug, Default)]
pub struct Table {
    heading: Vec<&'static str>,
    rows: Vec<Vec<(Style, String)>>,
}

impl Table {
    /// A table with a heading over each column.
    pub fn new(heading: &[&'static str]) -> Self {
        Self { heading: heading.to_vec(), rows: Vec::new() }
    }

    /// A table with these rows, and a heading over each of their columns.
    pub fn with_rows<const COLUMNS: usize>(
        heading: [&'static str; COLUMNS],
        rows: impl IntoIterator<Item = [(Style, String); COLUMNS]>,
    ) -> Self {
        let mut table = Self::new(&heading);
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// Adds a row; foreign text is made safe, and one line, here.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [(Style, String); COLUMNS]) {
        self.rows.push(cells.map(|(style, text)| (style, one_line(&text))).into());
    }

    /// The table without empty columns.
    #[must_use]
    pub fn without_empty_columns(self) -> Self {
        let says = |column: &usize| {
            self.rows.iter().any(|row| row.get(*column).is_some_and(|(_, text)| !text.is_empty()))
        };
        let kept: Vec<usize> = (0..self.heading.len()).filter(says).collect();
        let row = |row: &Vec<(Style, String)>| kept.iter().map(|at| row[*at].clone()).collect();
        Self {
            heading: kept.iter().map(|at| self.heading[*at]).collect(),
            rows: self.rows.iter().map(row).collect(),
        }
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text for a terminal with this many columns; with `None`, each row is one line, however long.
    ///
    /// A table that is too wide is wrapped in the column with the longest texts. If that does not help, each
    /// row becomes a block, with a line for each cell.
    pub fn render(&self, room: Option<usize>) -> String {
        let mut widths: Vec<usize> = (0..self.heading.len()).map(|at| self.width(at)).collect();
        let all = widths.iter().sum::<usize>() + BETWEEN * widths.len().saturating_sub(1);
        if let Some(excess) = room.and_then(|room| all.checked_sub(room)).filter(|more| *more > 0) {
            match self.wrappable(&widths, excess) {
                Some(column) => widths[column] -= excess,
                None => return self.blocks(room.unwrap_or(all)),
            }
        }
        self.columns(&widths)
    }

    /// How wide a column is.
    fn width(&self, column: usize) -> usize {
        let cells = self.rows.iter().filter_map(|row| row.get(column));
        let widest = cells.map(|(_, text)| width_of(text)).max().unwrap_or(0);
        widest.max(width_of(self.heading[column]))
    }

    /// The widest column, if its words still fit after it is made narrower by `excess`.
    fn wrappable(&self, widths: &[usize], excess: usize) -> Option<usize> {
        let column = (0..widths.len()).max_by_key(|column| widths[*column])?;
        let room = widths[column].checked_sub(excess).filter(|room| *room >= NARROWEST)?;
        let mut cells = self.rows.iter().filter_map(|row| row.get(column));
        let fits = |text: &str| text.split(' ').all(|word| width_of(word) <= room);
        cells.all(|(_, text)| fits(text)).then_some(column)
    }

    fn columns(&self, widths: &[usize]) -> String {
        let mut text = String::new();
        let heading: Vec<(Style, String)> =
            self.heading.iter().map(|title| (crate::report::FAINT, (*title).to_owned())).collect();
        for row in std::iter::once(&heading).chain(&self.rows) {
            let wrapped = row.iter().zip(widths).map(|((_, cell), width)| wrap(cell, *width));
            let wrapped: Vec<Vec<String>> = wrapped.collect();
            let height = wrapped.iter().map(Vec::len).max().unwrap_or(0);
            for line in 0..height {
                for (column, (style, _)) in row.iter().enumerate() {
                    let cell = wrapped[column].get(line).map_or("", String::as_str);
                    // An empty text gets no style, which would hide the spaces before it from the trimming
                    // below.
                    if !cell.is_empty() {
                        text.push_str(&format!("{style}{cell}{style:#}"));
                    }
                    if column + 1 < row.len() {
                        let padding = widths[column] + BETWEEN - width_of(cell);
                        text.extend(std::iter::repeat_n(' ', padding));
                    }
                }
                text.truncate(text.trim_end_matches(' ').len());
                text.push('\n');
            }
        }
        text
    }

    /// A block for each row: its first cell, and below it the others with their headings.
    fn blocks(&self, room: usize) -> String {
        let faint = crate::report::FAINT;
        let titles = self.heading.iter().skip(1).map(|title| width_of(title)).max().unwrap_or(0);
        let indent = BETWEEN + titles + if titles > 0 { BETWEEN } else { 0 };
        let mut text = String::new();
        for row in &self.rows {
            for (column, (style, cell)) in row.iter().enumerate() {
                if column == 0 {
                    text.push_str(&format!("{style}{cell}{style:#}\n"));
                    continue;
                }
                if cell.is_empty() {
                    continue;
                }
                let title = self.heading[column];
                let padding = indent - BETWEEN - width_of(title);
                text.push_str(&format!("  {faint}{title}{faint:#}{:padding$}", ""));
                for (number, line) in wrap(cell, room.saturating_sub(indent)).iter().enumerate() {
                    let before = if number == 0 { 0 } else { indent };
                    text.push_str(&format!("{:before$}{style}{line}{style:#}\n", ""));
                }
            }
        }
        text
    }
}

/// The columns between two columns.
const BETWEEN: usize = 2;

/// No column is made narrower than this.
const NARROWEST: usize = 24;

fn width_of(text: &str) -> usize {
    text.chars().count()
}

/// The lines of a text. None is wider than `width`, unless a word is.
fn wrap(text: &str, width: usize) -> Vec<String> {
    if width_of(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if width_of(line) + 1 + width_of(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// No line of this many bytes has a part that is too long.
const LONGEST_LINE: usize = 400;

/// Foreign text as a terminal may show it: control characters are escaped, line breaks stay.
pub fn printable(text: &str) -> Cow<'_, str> {
    let is_harmful = |character: char| {
        (character.is_control() && character != '\n' && character != '\t')
            || matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
    };
    if !text.contains(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if is_harmful(character) {
            shown.extend(character.escape_unicode());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Each line of a report, as [`brief`] as a person reads it: a report may have any number of lines.
pub(super) fn brief_lines(text: &str) -> Cow<'_, str> {
    let is_short =
        text.len() <= LONGEST_LINE || text.lines().all(|line| line.len() <= LONGEST_LINE);
    match is_short {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.lines().map(brief).collect::<Vec<_>>().join("\n")),
    }
}

/// Foreign text, safe and on one line.
pub(super) fn one_line(text: &str) -> String {
    printable(&brief(text)).replace(['\n', '\t'], " ")
}

/// Whether a stream without styles shows a text unchanged.
pub(super) fn is_plain(text: &str) -> bool {
    let is_plain = |byte: &u8| (*byte >= b' ' && *byte != 0x7f) || matches!(byte, b'\n' | b'\t');
    // All bytes of a part are looked at, because that takes a few instructions for many of them at once.
    text.as_bytes()
        .chunks(64)
        .all(|part| part.iter().map(is_plain).fold(true, |all, one| all & one))
}

/// Bytes for people: `12 B`, `3.4 KiB`, `5.6 MiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    // What would be rounded to 1024.0 is one of the next unit.
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_where_their_text_ends() {
        let mut table = Table::new(&["a", ""]);
        table.row([(Style::new(), "1".to_owned()), (crate::report::GOOD, String::new())]);
        let text = anstream::adapter::strip_str(&table.render(None)).to_string();
        assert_eq!(text, "a\n1\n");
    }

    #[test]
    fn a_column_that_says_nothing_can_be_left_out() {
        let mut table = Table::new(&["a", "b", "c"]);
        let cell = |text: &str| (Style::new(), text.to_owned());
        table.row([cell("1"), cell(""), cell("3")]);
        let text =
            anstream::adapter::strip_str(&table.without_empty_columns().render(None)).to_string();
        assert_eq!(text, "a  c\n1  3\n");
    }

    #[test]
    fn a_row_is_a_line_whatever_is_in_it() {
        let mut table = Table::new(&["a", "b"]);
        table.row([(Style::new(), "1\n2\t\u{1b}[2J".to_owned()), (Style::new(), "3".to_owned())]);
        let text = anstream::adapter::strip_str(&table.render(None)).to_string();
        assert_eq!(text, "a              b\n1 2 \\u{1b}[2J  3\n");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["package", "version"]);
        table.row([(Style::new(), "a".to_owned()), (Style::new(), "1.0.0".to_owned())]);
        table.row([(Style::new(), "hub.mu.com/aws".to_owned()), (Style::new(), "2".to_owned())]);
        let text = anstream::adapter::strip_str(&table.render(None)).to_string();
        assert_eq!(text, "package         version\na               1.0.0\nhub.mu.com/aws  2\n");
    }
    fn outdated() -> Table {
        let mut table = Table::new(&["package", "current", "note"]);
        let cell = |text: &str| (Style::new(), text.to_owned());
        let note = "^1.0 by git.acme.example/ops/logs, ^1.1 by web/proxy";
        table.row([cell("web/tls"), cell("1.1.0"), cell(note)]);
        table.row([cell("web/proxy"), cell("1.2.0"), cell("")]);
        table
    }

    fn plain(text: &str) -> String {
        anstream::adapter::strip_str(text).to_string()
    }

    #[test]
    fn a_table_that_is_too_wide_is_wrapped_in_its_widest_column() {
        insta::assert_snapshot!(plain(&outdated().render(Some(54))), @"
        package    current  note
        web/tls    1.1.0    ^1.0 by git.acme.example/ops/logs,
                            ^1.1 by web/proxy
        web/proxy  1.2.0
        ");
    }

    #[test]
    fn where_columns_have_no_room_each_row_is_a_block() {
        insta::assert_snapshot!(plain(&outdated().render(Some(40))), @"
        web/tls
          current  1.1.0
          note     ^1.0 by
                   git.acme.example/ops/logs,
                   ^1.1 by web/proxy
        web/proxy
          current  1.2.0
        ");
        // A word that is too long is not cut, because people may have to copy it.
        assert!(plain(&outdated().render(Some(10))).contains("git.acme.example/ops/logs,\n"));
    }

    #[test]
    fn shows_and_never_obeys() {
        assert_eq!(printable("plain\nlines"), "plain\nlines");
        assert_eq!(printable("a\u{1b}[31mb\u{202e}"), "a\\u{1b}[31mb\\u{202e}");
        let breaks_and_marks = "\u{61c}\u{2028}\u{2029}\u{feff}";
        assert_eq!(printable(breaks_and_marks), "\\u{61c}\\u{2028}\\u{2029}\\u{feff}");
    }

    #[test]
    fn counts_and_sizes() {
        assert_eq!(
            (count(1, "package"), count(0, "package")),
            ("1 package".into(), "0 packages".into())
        );
        assert_eq!(
            (size(1023), size(1536), size(5 << 30)),
            ("1023 B".into(), "1.5 KiB".into(), "5.0 GiB".into())
        );
        assert_eq!(
            (size((1 << 20) - 1), size((1 << 30) - 1), size(u64::MAX)),
            ("1.0 MiB".into(), "1.0 GiB".into(), "16777216.0 TiB".into())
        );
    }
}
