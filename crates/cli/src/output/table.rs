//! Columns for people: aligned, two blanks apart, no lines.

use std::fmt::Write as _;

use anstyle::Effects;

use super::harmless;

/// A table that is printed when all of its rows are known.
#[derive(Debug)]
pub(crate) struct Table<const COLUMNS: usize> {
    rows: Vec<[String; COLUMNS]>,
}

impl<const COLUMNS: usize> Table<COLUMNS> {
    /// A table with these heads.
    pub(crate) fn new(heads: [&str; COLUMNS]) -> Self {
        Self { rows: vec![heads.map(str::to_owned)] }
    }

    /// Adds a row. Control characters are shown escaped: what plugins and
    /// files say must not move the cursor of a terminal.
    pub(crate) fn row(&mut self, cells: [String; COLUMNS]) {
        self.rows.push(cells.map(|cell| harmless(&cell)));
    }

    /// The table as text, heads in bold.
    pub(crate) fn render(&self) -> String {
        let mut widths = [0; COLUMNS];
        for row in &self.rows {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let mut text = String::new();
        let bold = anstyle::Style::new().effects(Effects::BOLD);
        for (number, row) in self.rows.iter().enumerate() {
            let cells: Vec<_> =
                row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            let line = cells.join("  ");
            let line = line.trim_end();
            if number == 0 {
                // Writing to a String can't fail.
                let _ = write!(text, "{bold}{line}{bold:#}");
            } else {
                text.push_str(line);
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
    fn columns_are_aligned_and_cells_harmless() {
        let mut table = Table::new(["NAME", "STATE"]);
        table.row(["a-longer-name".into(), "alive".into()]);
        table.row(["é".into(), "\u{1b}[2J".into()]);
        let text = anstream::adapter::strip_str(&table.render()).to_string();
        assert_eq!(text, "NAME           STATE\na-longer-name  alive\né              \\u{1b}[2J\n");
    }
}
