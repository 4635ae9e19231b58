//! The runner; `cargo xtask bench` builds everything and starts it.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use podwire_bench::scenario::Bench;
use podwire_bench::subject::Subject;
use podwire_testkit::World;

const USAGE: &str = "podwire-bench OUR_PLUGINS GO_PLUGINS FLOOR [ROUNDS]";

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(ours), Some(go), Some(floor)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        let _ = writeln!(std::io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    let rounds = arguments
        .next()
        .and_then(|text| text.to_str().and_then(|text| text.parse().ok()))
        .unwrap_or(40);
    let subjects = [
        Subject::Podwire(PathBuf::from(ours)),
        Subject::Go(PathBuf::from(go)),
        Subject::Floor(PathBuf::from(floor)),
    ];
    let world = World::new();
    let mut bench = Bench::new(&world, &subjects, rounds);
    let outcome = bench.run();
    let _ = write!(std::io::stdout(), "{}", bench.report.table());
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "{error}");
            ExitCode::FAILURE
        }
    }
}
