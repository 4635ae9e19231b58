//! `docs/benchmarks.md`.

use std::fmt::Write as _;

use super::machine::Machine;
use super::plot::Drawn;
use super::table::{self, Words};
use super::{Report, budget};
use crate::sections;

const HEAD: &str = "\
# Benchmarks

Written by `cargo xtask bench --report`; don't edit.

Each call of Podwire beside the same call of the Go plugins, and of a floor: the
fewest netlink messages that make the same end state, with nothing looked at first
and nothing kept. A call is timed from fork to exit, warm, in a private network and
mount namespace with its state on tmpfs, or on a real disk where a row says so.
Subjects take turns within each round; only where a subject needs the host's tables
to itself (port mappings, packets) they follow one another. Where a Go plugin needs
seconds for a round, it has fewer of them, and on curves its system calls are counted
at the first point only. Times depend on the machine: what can be relied on are
ratios, and the counts.

";

const AIMS: &str = "
## Aims

They are for the least of many rounds on two quiet processors, so that is what keeps
them; for DEL it is the median, since how long a call waits for a grace period of the
kernel is luck.

";

/// The page.
pub fn page(report: &Report, machine: &Machine, drawn: &[Drawn]) -> String {
    let mut text = String::from(HEAD);
    text.push_str("## Machine\n\n");
    text.push_str(&machine.list());
    if let Some(table) = budget::table(report) {
        text.push_str(AIMS);
        text.push_str(&markdown(&table));
    }
    for section in sections::ALL {
        let tables = [
            table::times(report, section.name),
            table::counts(report, section.name),
            table::figures(report, section.name),
        ];
        if tables.iter().all(Option::is_none) {
            continue;
        }
        let _ = write!(text, "\n## {}\n", section.title);
        for plot in drawn.iter().filter(|plot| plot.section == section.name) {
            let _ = write!(text, "\n![{}](plots/{})\n", plot.title, plot.file);
        }
        for table in tables.into_iter().flatten() {
            text.push('\n');
            text.push_str(&markdown(&table));
        }
    }
    if !report.remarks().is_empty() {
        text.push_str("\n## Remarks\n\n");
        for remark in report.remarks() {
            let _ = writeln!(text, "- {remark}");
        }
    }
    text
}

fn markdown(table: &[Words]) -> String {
    let mut text = String::new();
    for (index, row) in table.iter().enumerate() {
        let _ = writeln!(text, "| {} |", row.join(" | "));
        if index == 0 {
            let _ = writeln!(text, "|---{}|", "|---:".repeat(row.len().saturating_sub(1)));
        }
    }
    text
}
