//! The tables.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::{Report, Row};
use crate::sections;
use crate::subject::Subject;

/// A row of words.
pub(super) type Words = Vec<String>;

/// Everything as aligned text, for a terminal.
pub fn plain(report: &Report) -> String {
    let mut text = String::new();
    for section in sections::ALL {
        let tables = [
            times(report, section.name),
            counts(report, section.name),
            figures(report, section.name),
        ];
        for table in tables.into_iter().flatten() {
            let _ = writeln!(text, "\n{}", section.title);
            text.push_str(&aligned(&table));
        }
    }
    for remark in report.remarks() {
        let _ = writeln!(text, "\nremark: {remark}");
    }
    text
}

fn aligned(table: &[Words]) -> String {
    let mut widths = Vec::new();
    for row in table {
        widths.resize(row.len().max(widths.len()), 0);
        for (width, word) in widths.iter_mut().zip(row) {
            *width = word.chars().count().max(*width);
        }
    }
    let mut text = String::new();
    for row in table {
        for (index, (width, word)) in widths.iter().zip(row).enumerate() {
            let _ = if index == 0 {
                write!(text, "  {word:<width$}")
            } else {
                write!(text, "  {word:>width$}")
            };
        }
        text.push('\n');
    }
    text
}

/// The head and the rows of a section's times: milliseconds, median with
/// minimum and 95th percentile, and how ours compares.
pub(super) fn times(report: &Report, section: &str) -> Option<Vec<Words>> {
    let rows: Vec<_> = report
        .rows(section)
        .filter(|(_, cells)| cells.values().any(super::Cell::is_timed))
        .collect();
    let subjects = present(&rows)?;
    let mut head = vec!["ms: median (least, 95 %; rounds if fewer)".to_owned()];
    head.extend(subjects.iter().map(|subject| subject.name().to_owned()));
    head.extend(["Go / Podwire".to_owned(), "Podwire / floor".to_owned()]);
    let mut table = vec![head];
    for (place, cells) in rows {
        let mut words = vec![name(place)];
        let ours = cells.get(&Subject::Podwire).map_or(0, super::Cell::rounds);
        words.extend(subjects.iter().map(|subject| {
            let cell = cells.get(subject).filter(|cell| cell.is_timed());
            cell.map_or_else(String::new, |cell| {
                let [median, best, late] = [cell.median(), cell.best(), cell.late()]
                    .map(|time| short(time.unwrap_or_default()));
                // A slow one isn't asked as often.
                let rounds = match cell.rounds() {
                    fewer if fewer < ours => format!("; {fewer}"),
                    _ => String::new(),
                };
                format!("{median} ({best}, {late}{rounds})")
            })
        }));
        words.push(ratio(cells, Subject::GoNew, Subject::Podwire));
        words.push(ratio(cells, Subject::Podwire, Subject::Floor));
        table.push(words);
    }
    Some(table)
}

/// The same of counts: programs / system calls / netlink messages / processor
/// time / memory.
pub(super) fn counts(report: &Report, section: &str) -> Option<Vec<Words>> {
    let rows: Vec<_> = report
        .rows(section)
        .filter(|(_, cells)| cells.values().any(|cell| cell.counts.is_some()))
        .collect();
    let subjects = present(&rows)?;
    let mut head = vec!["programs / system calls / messages / CPU ms / MB".to_owned()];
    head.extend(subjects.iter().map(|subject| subject.name().to_owned()));
    let mut table = vec![head];
    for (place, cells) in rows {
        let mut words = vec![name(place)];
        words.extend(subjects.iter().map(|subject| {
            let Some(cell) = cells.get(subject) else { return String::new() };
            let Some(counts) = cell.counts else { return String::new() };
            format!(
                "{} / {} / {} / {} / {:.1}",
                counts.processes,
                counts.system_calls,
                counts.messages,
                cell.processor().map_or_else(|| "-".to_owned(), short),
                megabytes(counts.peak_memory),
            )
        }));
        table.push(words);
    }
    Some(table)
}

/// The other numbers of a section.
pub(super) fn figures(report: &Report, section: &str) -> Option<Vec<Words>> {
    let rows: Vec<_> = report.figures(section).collect();
    let mut subjects = Subject::ALL.to_vec();
    subjects.retain(|subject| rows.iter().any(|(_, values)| values.contains_key(subject)));
    if subjects.is_empty() {
        return None;
    }
    let mut head = vec![String::new()];
    head.extend(subjects.iter().map(|subject| subject.name().to_owned()));
    let mut table = vec![head];
    for (name, values) in rows {
        let mut words = vec![name.to_owned()];
        words.extend(
            subjects
                .iter()
                .map(|subject| values.get(subject).map_or_else(String::new, |value| short(*value))),
        );
        table.push(words);
    }
    Some(table)
}

fn present(rows: &[Row<'_>]) -> Option<Vec<Subject>> {
    let mut subjects = Subject::ALL.to_vec();
    subjects.retain(|subject| rows.iter().any(|(_, cells)| cells.contains_key(subject)));
    (!subjects.is_empty()).then_some(subjects)
}

/// A call with what it is plotted against.
pub(super) fn name(place: &crate::bench::Place) -> String {
    match place.at {
        None => place.call.clone(),
        Some(at) => format!("{}, {} there", place.call, thousands(u64::from(at))),
    }
}

/// A number with as many digits as say something.
pub(super) fn short(value: f64) -> String {
    if value >= 1_000.0 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rounded")]
        return thousands(value.round() as u64);
    }
    let digits = if value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$}")
}

/// A number with commas.
fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

/// Of medians, since a single lucky run is no promise.
fn ratio(cells: &BTreeMap<Subject, super::Cell>, over: Subject, under: Subject) -> String {
    let median = |subject| cells.get(&subject).and_then(super::Cell::median);
    match (median(over), median(under)) {
        (Some(over), Some(under)) if under > 0.0 => format!("{:.1} x", over / under),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_have_commas() {
        assert_eq!(short(0.123), "0.12");
        assert_eq!(short(12.34), "12.3");
        assert_eq!(short(345.6), "346");
        assert_eq!(short(118_000_000.0), "118,000,000");
        assert_eq!(thousands(999), "999");
    }

    #[test]
    fn columns_are_aligned() {
        let words = |words: [&str; 2]| words.map(str::to_owned).to_vec();
        assert_eq!(aligned(&[words(["a", "bb"]), words(["ccc", "d"])]), "  a    bb\n  ccc   d\n");
    }
}
