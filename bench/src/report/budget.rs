//! The aims, with what was measured.

use super::Report;
use super::table::{Words, short};
use crate::samples::Cell;
use crate::subject::Subject;

/// Where a time stands: section, call, and what it is plotted against.
type At = (&'static str, &'static str, Option<u32>);

/// What is promised of a time.
enum Aim {
    /// At most so many milliseconds.
    Milliseconds(f64),
    /// At most so many times another of ours.
    TimesOurs(f64, At),
    /// At most so many times the floor.
    TimesFloor(f64),
    /// At most so many milliseconds above the floor.
    AboveFloor(f64),
    /// Go takes at least so many times as long.
    TimesGo(f64),
    /// At most so many programs.
    Programs(u64),
    /// At most so many bytes of memory.
    Memory(u64),
}

const AIMS: &[(At, Aim)] = &[
    (("start", "VERSION", None), Aim::Milliseconds(0.3)),
    (("start", "VERSION", None), Aim::TimesGo(5.0)),
    (("start", "VERSION", None), Aim::Memory(3_000_000)),
    (("host-local", "host-local ADD", Some(10)), Aim::Milliseconds(1.0)),
    (
        ("host-local", "host-local ADD", Some(10_000)),
        Aim::TimesOurs(2.0, ("host-local", "host-local ADD", Some(10))),
    ),
    (
        ("host-local", "host-local ADD", Some(60_000)),
        Aim::TimesOurs(2.0, ("host-local", "host-local ADD", Some(10))),
    ),
    (("interfaces", "bridge ADD", None), Aim::TimesFloor(2.0)),
    (("interfaces", "bridge DEL", None), Aim::TimesFloor(1.2)),
    (("interfaces", "bridge ADD", None), Aim::Memory(3_000_000)),
    (("masquerade", "bridge with masquerade ADD", None), Aim::AboveFloor(3.0)),
    (("masquerade", "bridge with masquerade DEL", None), Aim::AboveFloor(15.0)),
    (("masquerade", "bridge with masquerade ADD", None), Aim::Programs(1)),
    (("portmap", "portmap ADD", Some(0)), Aim::Milliseconds(4.0)),
    (("portmap", "portmap CHECK", Some(0)), Aim::Milliseconds(3.0)),
    (("portmap", "portmap DEL", Some(0)), Aim::Milliseconds(15.0)),
    (("portmap", "portmap ADD", Some(0)), Aim::Programs(1)),
    (("portmap", "portmap ADD", Some(0)), Aim::Memory(3_000_000)),
    (
        ("portmap", "portmap ADD", Some(1_000)),
        Aim::TimesOurs(1.3, ("portmap", "portmap ADD", Some(0))),
    ),
    (
        ("portmap", "portmap DEL", Some(1_000)),
        Aim::TimesOurs(1.3, ("portmap", "portmap DEL", Some(0))),
    ),
    (
        ("portmap", "portmap ADD", Some(10_000)),
        Aim::TimesOurs(1.3, ("portmap", "portmap ADD", Some(0))),
    ),
    (
        ("portmap", "portmap DEL", Some(10_000)),
        Aim::TimesOurs(1.3, ("portmap", "portmap DEL", Some(0))),
    ),
    (("chain", "chain ADD", None), Aim::Milliseconds(9.0)),
    (("chain", "chain DEL", None), Aim::Milliseconds(30.0)),
    (("crowd", "all ADD", Some(200)), Aim::Milliseconds(2_500.0)),
    (("crowd", "all DEL", Some(200)), Aim::Milliseconds(6_000.0)),
];

/// The most bytes of all plugins.
const MOST_BYTES: f64 = 3_000_000.0;

/// Call, aim, what was measured as the least of all rounds and as their median, and
/// whether that keeps it; `None` if none was measured.
pub(super) fn table(report: &Report) -> Option<Vec<Words>> {
    let mut table: Vec<Words> =
        AIMS.iter().filter_map(|(at, aim)| line(report, *at, aim)).collect();
    let size = report
        .figures("size")
        .find(|(name, _)| *name == "all plugins, bytes")
        .and_then(|(_, values)| values.get(&Subject::Podwire).copied());
    if let Some(size) = size {
        let aim = format!("{} bytes", short(MOST_BYTES));
        let name = "size of all plugins".to_owned();
        table.push(vec![name, aim, short(size), String::new(), kept(size <= MOST_BYTES)]);
    }
    if table.is_empty() {
        return None;
    }
    let head = ["call", "at most", "least", "median", "kept"].map(str::to_owned).to_vec();
    table.insert(0, head);
    Some(table)
}

fn kept(is_kept: bool) -> String {
    if is_kept { "yes" } else { "**no**" }.to_owned()
}

fn line(report: &Report, at: At, aim: &Aim) -> Option<Words> {
    let name = at.2.map_or_else(|| at.1.to_owned(), |there| format!("{}, {there} there", at.1));
    let least = measured(report, at, aim, Cell::best)?;
    let median = match aim {
        // These don't differ from round to round.
        Aim::Programs(_) | Aim::Memory(_) => (String::new(), least.1),
        _ => measured(report, at, aim, Cell::median)?,
    };
    // How long a grace period has to go when a call begins to wait for it is luck.
    let is_kept = if at.1.ends_with("DEL") { median.1 } else { least.1 };
    Some(vec![name, wanted(aim), least.0, median.0, kept(is_kept)])
}

fn wanted(aim: &Aim) -> String {
    match *aim {
        Aim::Milliseconds(most) => milliseconds(most),
        Aim::TimesOurs(most, other) => {
            format!("{} that at {}", times(most), other.2.unwrap_or_default())
        }
        Aim::TimesFloor(most) => format!("{} floor", times(most)),
        Aim::AboveFloor(most) => format!("floor + {most:.0} ms"),
        Aim::TimesGo(least) => format!("a {least:.0}th of Go"),
        Aim::Programs(most) => format!("{most} program"),
        Aim::Memory(most) => megabytes(most),
    }
}

/// What was measured, by one number for all rounds, and whether that keeps the aim.
fn measured(
    report: &Report,
    at: At,
    aim: &Aim,
    number: fn(&Cell) -> Option<f64>,
) -> Option<(String, bool)> {
    let time =
        |(section, call, at): At, subject| report.cell(section, call, at, subject).and_then(number);
    let counts = || report.cell(at.0, at.1, at.2, Subject::Podwire).and_then(|cell| cell.counts);
    let ours = time(at, Subject::Podwire);
    Some(match *aim {
        Aim::Milliseconds(most) => {
            let ours = ours?;
            (milliseconds(ours), ours <= most)
        }
        Aim::TimesOurs(most, other) => {
            let ratio = ours? / time(other, Subject::Podwire)?;
            (times(ratio), ratio <= most)
        }
        Aim::TimesFloor(most) => {
            let ratio = ours? / time(at, Subject::Floor)?;
            (times(ratio), ratio <= most)
        }
        Aim::AboveFloor(most) => {
            let above = ours? - time(at, Subject::Floor)?;
            (format!("floor {above:+.1} ms"), above <= most)
        }
        Aim::TimesGo(least) => {
            let ratio = time(at, Subject::GoNew)? / ours?;
            (format!("Go takes {}", times(ratio)), ratio >= least)
        }
        Aim::Programs(most) => {
            let found = counts()?.processes;
            (found.to_string(), found <= most)
        }
        Aim::Memory(most) => {
            let found = counts()?.peak_memory;
            (megabytes(found), found <= most)
        }
    })
}

fn milliseconds(value: f64) -> String {
    format!("{} ms", short(value))
}

fn times(value: f64) -> String {
    format!("{value:.1} x")
}

fn megabytes(bytes: u64) -> String {
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    let megabytes = bytes as f64 / 1e6;
    format!("{megabytes:.1} MB")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::Place;
    use crate::call::Run;

    #[test]
    fn the_least_keeps_an_aim_and_for_what_waits_the_median() {
        let mut report = Report::default();
        for call in ["bridge ADD", "bridge DEL"] {
            let place = Place::new("interfaces", call);
            for (subject, rounds) in
                [(Subject::Podwire, [11, 60, 60]), (Subject::Floor, [10, 20, 20])]
            {
                for milliseconds in rounds {
                    let time = Duration::from_millis(milliseconds);
                    let run = Run { times: Some((time, time)), ..Run::default() };
                    report.add(&place, subject, &run);
                }
            }
        }
        let table = table(&report).unwrap();
        for row in [
            ["bridge ADD", "2.0 x floor", "1.1 x", "3.0 x", "yes"],
            ["bridge DEL", "1.2 x floor", "1.1 x", "3.0 x", "**no**"],
        ] {
            assert!(table.iter().any(|line| *line == row), "{table:?}");
        }
    }
}
