//! The few figures of `README.md`.

use std::fmt::Write as _;

use super::Report;
use super::table::short;
use crate::samples::Cell;
use crate::subject::Subject;

/// The first line of the table there; it ends with the first line that is none.
const HEAD: &str = "| call | Podwire | Go 1.9.1 | floor |";

/// What a row says, and where its times stand: section, call, what it is beside.
type Row = (&'static str, &'static str, &'static str, Option<u32>);

const ROWS: &[Row] = &[
    ("VERSION", "start", "VERSION", None),
    ("`host-local` ADD", "host-local", "host-local ADD", Some(10)),
    ("`host-local` ADD, 60,000 reserved", "host-local", "host-local ADD", Some(60_000)),
    ("`bridge` + `host-local` ADD", "interfaces", "bridge ADD", None),
    ("`bridge` + `host-local` CHECK", "interfaces", "bridge CHECK", None),
    ("`bridge` + `host-local` DEL (waits for the kernel)", "interfaces", "bridge DEL", None),
    ("the same with `ipMasq`, ADD", "masquerade", "bridge with masquerade ADD", None),
    ("the same with `ipMasq`, DEL", "masquerade", "bridge with masquerade DEL", None),
    ("`portmap` ADD, 2 ports, 1,000 others", "portmap", "portmap ADD", Some(1_000)),
    ("`portmap` CHECK, the same", "portmap", "portmap CHECK", Some(1_000)),
    ("`portmap` DEL, the same", "portmap", "portmap DEL", Some(1_000)),
    ("four plugins in a chain, ADD", "chain", "chain ADD", None),
    ("four plugins in a chain, DEL", "chain", "chain DEL", None),
    ("200 containers at once, ADD of all", "crowd", "all ADD", Some(200)),
    ("200 containers at once, DEL of all", "crowd", "all DEL", Some(200)),
];

/// The page with its table written anew; `None` if it has no such table, or something
/// of it was not measured.
pub(super) fn renewed(page: &str, report: &Report) -> Option<String> {
    let (before, rest) = page.split_once(HEAD)?;
    let end = rest.find("\n\n").map_or(rest.len(), |end| end + 1);
    let after = rest.get(end..)?;
    let mut table = format!("{HEAD}\n|---|---:|---:|---:|\n");
    for (name, section, call, at) in ROWS {
        let median = |subject| report.cell(section, call, *at, subject).and_then(Cell::median);
        let [ours, go] = [Subject::Podwire, Subject::GoNew].map(median);
        let floor = median(Subject::Floor).map_or_else(String::new, short);
        let _ = writeln!(table, "| {name} | {} | {} | {floor} |", short(ours?), short(go?));
    }
    Some(format!("{before}{table}{after}"))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::bench::Place;
    use crate::call::Run;

    #[test]
    fn a_table_is_replaced_and_the_rest_stays() {
        let page = format!("above\n\n{HEAD}\n|---|\n| old | 1 |\n\nbelow\n");
        let mut report = Report::default();
        assert_eq!(renewed(&page, &report), None);
        for (_, section, call, at) in ROWS {
            let mut place = Place::new(section, *call);
            place.at = *at;
            for (subject, milliseconds) in [(Subject::Podwire, 2), (Subject::GoNew, 1_500)] {
                let time = Duration::from_millis(milliseconds);
                let run = Run { times: Some((time, time)), ..Run::default() };
                report.add(&place, subject, &run);
            }
        }
        let text = renewed(&page, &report).unwrap();
        assert!(text.starts_with("above\n\n| call") && text.ends_with("|\n\nbelow\n"), "{text}");
        assert!(text.contains("| VERSION | 2.00 | 1,500 |  |\n"), "{text}");
        assert!(!text.contains("old"));
        assert_eq!(renewed("no table", &report), None);
    }
}
