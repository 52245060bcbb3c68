//! Columns that line up, for people. Programs ask for `--json`.

use anstyle::Style;

use crate::report::text::printable;

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

    /// Adds a row; foreign text is made safe, and one line, here.
    pub fn row<const COLUMNS: usize>(&mut self, cells: [(Style, String); COLUMNS]) {
        let safe = cells
            .into_iter()
            .map(|(style, text)| (style, printable(&text).replace(['\n', '\t'], " ")));
        self.rows.push(safe.collect());
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

    /// The text, a line a row.
    pub fn render(&self) -> String {
        let width_of = |text: &str| text.chars().count();
        let widths: Vec<usize> = (0..self.heading.len())
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                let widest = cells.map(|(_, text)| width_of(text)).max().unwrap_or(0);
                widest.max(width_of(self.heading[column]))
            })
            .collect();
        let mut text = String::new();
        let heading: Vec<(Style, String)> =
            self.heading.iter().map(|title| (crate::report::FAINT, (*title).to_owned())).collect();
        for row in std::iter::once(&heading).chain(&self.rows) {
            for (column, (style, cell)) in row.iter().enumerate() {
                let is_last = column + 1 == row.len();
                // An empty text gets no style, which would hide the spaces before it from the trimming below.
                if !cell.is_empty() {
                    text.push_str(&format!("{style}{cell}{style:#}"));
                }
                if !is_last {
                    let padding = widths[column] + 2 - width_of(cell);
                    text.extend(std::iter::repeat_n(' ', padding));
                }
            }
            while text.ends_with(' ') {
                text.pop();
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_end_where_their_text_ends() {
        let mut table = Table::new(&["a", ""]);
        table.row([(Style::new(), "1".to_owned()), (crate::report::GOOD, String::new())]);
        let text = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(text, "a\n1\n");
    }

    #[test]
    fn a_column_that_says_nothing_can_be_left_out() {
        let mut table = Table::new(&["a", "b", "c"]);
        let cell = |text: &str| (Style::new(), text.to_owned());
        table.row([cell("1"), cell(""), cell("3")]);
        let text =
            anstream::adapter::strip_str(&table.without_empty_columns().render()).to_string();
        assert_eq!(text, "a  c\n1  3\n");
    }

    #[test]
    fn a_row_is_a_line_whatever_is_in_it() {
        let mut table = Table::new(&["a", "b"]);
        table.row([(Style::new(), "1\n2\t\u{1b}[2J".to_owned()), (Style::new(), "3".to_owned())]);
        let text = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(text, "a              b\n1 2 \\u{1b}[2J  3\n");
    }

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(&["package", "version"]);
        table.row([(Style::new(), "a".to_owned()), (Style::new(), "1.0.0".to_owned())]);
        table.row([(Style::new(), "hub.mu.com/aws".to_owned()), (Style::new(), "2".to_owned())]);
        let text = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(text, "package         version\na               1.0.0\nhub.mu.com/aws  2\n");
    }
}
