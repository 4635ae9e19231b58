//! What is measured, one file each.

mod attachments;
mod chain;
mod crowd;
mod driver;
mod host_local;
mod interfaces;
mod neighbours;
mod portmap;
mod runtime;
mod size;
mod start;
mod store;
mod traffic;

use std::io::Write as _;
use std::time::Instant;

use crate::Outcome;
use crate::bench::Bench;
use crate::subject::Subject;

/// A part of the benchmark.
pub struct Section {
    /// Its name, for `--section`.
    pub name: &'static str,
    /// Its heading in the report.
    pub title: &'static str,
    /// Whether a quick run has it.
    is_quick: bool,
    run: fn(&mut Bench<'_>) -> Outcome,
}

/// All sections, in the order of the report.
pub const ALL: &[Section] = &[
    Section { name: "start", title: "Process start", is_quick: true, run: start::run },
    Section { name: "host-local", title: "host-local", is_quick: true, run: host_local::run },
    Section { name: "interfaces", title: "Interfaces", is_quick: true, run: interfaces::run },
    Section {
        name: "masquerade",
        title: "Masquerade",
        is_quick: true,
        run: interfaces::masquerade,
    },
    Section { name: "portmap", title: "Port mappings", is_quick: true, run: portmap::run },
    Section { name: "chain", title: "Four plugins in a chain", is_quick: true, run: chain::run },
    Section { name: "runtime", title: "The chain by a runtime", is_quick: true, run: runtime::run },
    Section {
        name: "attachments",
        title: "A bridge with many attachments",
        is_quick: true,
        run: attachments::run,
    },
    Section { name: "crowd", title: "Many containers at once", is_quick: false, run: crowd::run },
    Section { name: "traffic", title: "Packets", is_quick: false, run: traffic::run },
    Section { name: "store", title: "A node's records", is_quick: true, run: store::run },
    Section { name: "size", title: "Size", is_quick: true, run: size::run },
];

/// Runs what was asked for; `after_each` sees what there is after each section.
///
/// # Errors
/// A section isn't known, or a call of ours failed. A Go plugin that fails is
/// noted in the report.
pub fn run(bench: &mut Bench<'_>, after_each: &dyn Fn(&Bench<'_>) -> Outcome) -> Outcome {
    let wanted = bench.options.sections.clone();
    for name in &wanted {
        if !ALL.iter().any(|section| section.name == name) {
            let names: Vec<_> = ALL.iter().map(|section| section.name).collect();
            return Err(format!("no section {name:?}; there are: {}", names.join(" ")));
        }
    }
    for section in ALL {
        let is_wanted = if wanted.is_empty() {
            section.is_quick || !bench.options.quick
        } else {
            wanted.iter().any(|name| name == section.name)
        };
        if is_wanted {
            let started = Instant::now();
            (section.run)(bench).map_err(|error| format!("{}: {error}", section.name))?;
            let took = started.elapsed().as_secs_f64();
            let _ = writeln!(std::io::stderr(), "  {:<12} {took:>6.1} s", section.name);
            after_each(bench)?;
        }
    }
    Ok(())
}

/// A failure of a peer is noted, one of ours ends the run.
pub(crate) fn tolerate<T: Default>(
    bench: &mut Bench<'_>,
    subject: Subject,
    outcome: Outcome<T>,
) -> Outcome<T> {
    match outcome {
        Err(error) if subject.is_go() => {
            bench.report.remark(&error);
            Ok(T::default())
        }
        outcome => outcome,
    }
}
