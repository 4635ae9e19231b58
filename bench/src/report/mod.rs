//! The results, as a table, as a page with plots, and against the budgets.

pub mod budget;
pub mod machine;
pub mod page;
pub mod plot;
mod readme;
pub mod table;

use std::collections::BTreeMap;
use std::path::Path;

use crate::Outcome;
use crate::bench::Place;
use crate::call::Run;
use crate::samples::Cell;
use crate::subject::Subject;

/// Everything that was measured, in the order in which it was first seen.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<(Place, BTreeMap<Subject, Cell>)>,
    figures: Vec<(&'static str, String, BTreeMap<Subject, f64>)>,
    remarks: Vec<String>,
}

/// A row: a call, and what each subject took.
pub type Row<'r> = (&'r Place, &'r BTreeMap<Subject, Cell>);

impl Report {
    /// Adds a run.
    pub fn add(&mut self, place: &Place, subject: Subject, run: &Run) {
        let index = match self.rows.iter().position(|(known, _)| known == place) {
            Some(index) => index,
            None => {
                self.rows.push((place.clone(), BTreeMap::new()));
                self.rows.len() - 1
            }
        };
        let Some((_, cells)) = self.rows.get_mut(index) else { return };
        let cell = cells.entry(subject).or_default();
        if let Some((wall, processor)) = run.times {
            cell.push(wall, processor);
        }
        if run.counts.is_some() {
            cell.counts = run.counts;
        }
    }

    /// Adds a number that isn't a time.
    pub fn figure(&mut self, section: &'static str, name: &str, subject: Subject, value: f64) {
        let known = self.figures.iter_mut().find(|(of, known, _)| *of == section && known == name);
        if let Some((_, _, values)) = known {
            values.insert(subject, value);
        } else {
            self.figures.push((section, name.to_owned(), BTreeMap::from([(subject, value)])));
        }
    }

    /// Adds something to know about the run; the same, whatever numbers it
    /// names, only once.
    pub fn remark(&mut self, text: &str) {
        let words: Vec<_> = text.split_whitespace().collect();
        let line: String = words.join(" ").chars().take(400).collect();
        let same = |line: &str| {
            let words = line.split(' ').filter(|word| !word.contains(|c: char| c.is_ascii_digit()));
            words.collect::<String>()
        };
        if !self.remarks.iter().any(|known| same(known) == same(&line)) {
            self.remarks.push(line);
        }
    }

    /// The rows of a section.
    pub fn rows<'r>(&'r self, section: &str) -> impl Iterator<Item = Row<'r>> {
        let rows = self.rows.iter().map(|(place, cells)| (place, cells));
        rows.filter(move |(place, _)| place.section == section)
    }

    /// The figures of a section.
    pub fn figures<'r>(
        &'r self,
        section: &str,
    ) -> impl Iterator<Item = (&'r str, &'r BTreeMap<Subject, f64>)> {
        let of_section = self.figures.iter().filter(move |(of, ..)| *of == section);
        of_section.map(|(_, name, values)| (name.as_str(), values))
    }

    /// What there is to know.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// What a subject took for a call.
    pub fn cell(
        &self,
        section: &str,
        call: &str,
        at: Option<u32>,
        subject: Subject,
    ) -> Option<&Cell> {
        self.rows(section)
            .find(|(place, _)| place.call == call && place.at == at)
            .and_then(|(_, cells)| cells.get(&subject))
    }
}

/// Writes `benchmarks.md` and the plots beside it, and after a whole run the table in
/// the `README.md` above.
///
/// # Errors
/// The directory can't be written, or a plot can't be drawn.
pub fn write(report: &Report, machine: &machine::Machine, directory: &Path) -> Outcome {
    let plots = directory.join("plots");
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    std::fs::create_dir_all(&plots).map_err(failed)?;
    let drawn = plot::draw_all(report, &plots)?;
    std::fs::write(directory.join("benchmarks.md"), page::page(report, machine, &drawn))
        .map_err(failed)?;
    let readme = directory.join("../README.md");
    let text = std::fs::read_to_string(&readme).unwrap_or_default();
    match readme::renewed(&text, report) {
        Some(text) => std::fs::write(&readme, text).map_err(failed),
        None => Ok(()),
    }
}
