//! The aims, with what was measured.

use super::Report;
use super::table::{Words, short};
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

/// Call, aim, measured, and whether it is kept; `None` if none was measured.
pub(super) fn table(report: &Report) -> Option<Vec<Words>> {
    let mut table: Vec<Words> =
        AIMS.iter().filter_map(|(at, aim)| line(report, *at, aim)).collect();
    let size = report
        .figures("size")
        .find(|(name, _)| *name == "all plugins, bytes")
        .and_then(|(_, values)| values.get(&Subject::Podwire).copied());
    if let Some(size) = size {
        let aim = format!("{} bytes", short(MOST_BYTES));
        let words = ["size of all plugins".to_owned(), aim, short(size), kept(size <= MOST_BYTES)];
        table.push(words.to_vec());
    }
    if table.is_empty() {
        return None;
    }
    let head = ["call", "at most", "measured", "kept"].map(str::to_owned).to_vec();
    table.insert(0, head);
    Some(table)
}

fn kept(is_kept: bool) -> String {
    if is_kept { "yes" } else { "**no**" }.to_owned()
}

fn line(report: &Report, at: At, aim: &Aim) -> Option<Words> {
    let median = |(section, call, at): At, subject| {
        report.cell(section, call, at, subject).and_then(super::Cell::median)
    };
    let counts = || report.cell(at.0, at.1, at.2, Subject::Podwire).and_then(|cell| cell.counts);
    let ours = median(at, Subject::Podwire);
    let milliseconds = |value: f64| format!("{} ms", short(value));
    let times = |value: f64| format!("{value:.1} x");
    let (wanted, measured, is_kept) = match *aim {
        Aim::Milliseconds(most) => {
            let ours = ours?;
            (milliseconds(most), milliseconds(ours), ours <= most)
        }
        Aim::TimesOurs(most, other) => {
            let ratio = ours? / median(other, Subject::Podwire)?;
            let other = other.2.unwrap_or_default();
            (format!("{most:.1} x that at {other}"), times(ratio), ratio <= most)
        }
        Aim::TimesFloor(most) => {
            let ratio = ours? / median(at, Subject::Floor)?;
            (format!("{most:.1} x floor"), times(ratio), ratio <= most)
        }
        Aim::AboveFloor(most) => {
            let above = ours? - median(at, Subject::Floor)?;
            (format!("floor + {most:.0} ms"), format!("floor {above:+.1} ms"), above <= most)
        }
        Aim::TimesGo(least) => {
            let ratio = median(at, Subject::GoNew)? / ours?;
            (format!("a {least:.0}th of Go"), format!("Go takes {ratio:.1} x"), ratio >= least)
        }
        Aim::Programs(most) => {
            let found = counts()?.processes;
            (format!("{most} program"), found.to_string(), found <= most)
        }
        Aim::Memory(most) => {
            let found = counts()?.peak_memory;
            #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
            let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
            (megabytes(most), megabytes(found), found <= most)
        }
    };
    let name = at.2.map_or_else(|| at.1.to_owned(), |there| format!("{}, {there} there", at.1));
    Some(vec![name, wanted, measured, kept(is_kept)])
}
