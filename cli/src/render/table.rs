//! Tables for lists: as wide as their content, cut where a cell is too long.

use crate::render::escape::{one_line, width};
use crate::render::style::{Style, Tone};

/// Columns of one cell.
const MAX_CELL: usize = 60;

/// Rows under a heading.
#[derive(Debug)]
pub(crate) struct Table {
    rows: Vec<Vec<String>>,
    columns: usize,
}

impl Table {
    /// An empty table with its heading.
    pub(crate) fn new<const N: usize>(heading: [&str; N]) -> Self {
        Self { rows: vec![heading.map(str::to_owned).to_vec()], columns: N }
    }

    /// Adds a row; its cells are neutralised and put on one line.
    pub(crate) fn row<const N: usize>(&mut self, cells: [&str; N]) {
        self.rows.push(cells.map(|cell| one_line(cell, MAX_CELL)).to_vec());
    }

    /// The table as text: nothing in the last column is padded.
    pub(crate) fn render(&self, style: Style) -> String {
        let widest = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|cell| width(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns).map(widest).collect();
        let mut text = String::new();
        for (index, row) in self.rows.iter().enumerate() {
            let mut line = String::new();
            for (cell, column) in row.iter().zip(&widths) {
                line.push_str(cell);
                line.push_str(&" ".repeat((column + 2).saturating_sub(width(cell))));
            }
            let line = line.trim_end();
            text.push_str(&if index == 0 { style.paint(Tone::Dim, line) } else { line.to_owned() });
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut table = Table::new(["ID", "TITLE", "UPDATED"]);
        table.row(["a", "汉字", "now"]);
        table.row(["longer", "x", "1 h ago"]);
        assert_eq!(
            table.render(Style::PLAIN),
            "ID      TITLE  UPDATED\na       汉字   now\nlonger  x      1 h ago\n"
        );
    }

    #[test]
    fn cells_are_one_safe_bounded_line() {
        let mut table = Table::new(["A"]);
        table.row([&format!("x\ny\u{1b}[0m{}", "z".repeat(100))]);
        let text = table.render(Style::PLAIN);
        assert_eq!(text.lines().count(), 2);
        assert!(text.contains("x y␛[0mzz") && text.ends_with("…\n"));
    }

    #[test]
    fn only_the_heading_is_dim() {
        let mut table = Table::new(["A"]);
        table.row(["b"]);
        assert_eq!(table.render(Style::COLOUR), "\u{1b}[2mA\u{1b}[0m\nb\n");
    }
}
