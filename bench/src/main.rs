//! The runner; `cargo xtask bench` builds everything and starts it.

use std::io::Write;
use std::process::ExitCode;

use podwire_bench::bench::Bench;
use podwire_bench::options::Options;
use podwire_bench::report::machine::Machine;
use podwire_bench::{Outcome, limits, report, sections};
use podwire_testkit::World;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Outcome {
    let mut options = Options::parse(std::env::args().skip(1))?;
    let machine = Machine::look(&options);
    let world = World::new();
    options.programs.enter(&world)?;
    let mut bench = Bench::new(&world, &options);
    // A whole run takes long: one that is cut off leaves what it had.
    sections::run(&mut bench, &|bench| match &options.report {
        Some(directory) => report::write(&bench.report, &machine.clone().ended(), directory),
        None => Ok(()),
    })?;
    let report = &bench.report;
    let _ = write!(std::io::stdout(), "{}", report::table::plain(report));
    if let Some(directory) = &options.report {
        let _ = writeln!(std::io::stdout(), "written to {}", directory.display());
    }
    match &options.limits {
        Some(file) if options.bless => limits::bless(report, file),
        Some(file) => limits::compare(report, file),
        None => Ok(()),
    }
}
