//! `cargo xtask crash`: kills every chain and the runtime at every system call.
//!
//! ```text
//! podwire-crash [--full] [--only TEXT] [--kills N]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person.

use std::process::ExitCode;
use std::thread::available_parallelism;

use podwire_tests::crash::{Command, Density, Job, Subject, Verb, all, run_all, table};

fn main() -> ExitCode {
    let (mut density, mut only) = (Density::Every, String::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.len()) {
            ("--full", _) => density = Density::Exhaustive,
            ("--only", 1..) => only = arguments.next().unwrap_or_default(),
            ("--kills", 1..) => match arguments.next().unwrap_or_default().parse() {
                Ok(kills) => density = Density::Spread(kills),
                Err(error) => return usage(&format!("--kills: {error}")),
            },
            (other, _) => return usage(&format!("unknown argument {other:?}")),
        }
    }
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    subjects.extend(all().into_iter().map(|chain| Box::new(chain) as Box<dyn Subject>));
    subjects.extend(all().into_iter().map(|one| Box::new(Command::over(one)) as Box<dyn Subject>));
    let jobs: Vec<_> = subjects
        .iter()
        .filter(|subject| subject.name().contains(&only))
        .flat_map(|subject| {
            let subject = subject.as_ref();
            [Verb::Add, Verb::Del, Verb::Gc].map(|verb| Job { subject, verb, density })
        })
        .collect();
    let tallies = run_all(&jobs, available_parallelism().map_or(1, usize::from));
    print!("{}", table(&tallies));
    let kills: usize = tallies.iter().map(|tally| tally.tried).sum();
    let sound = tallies.iter().all(|tally| tally.faults.is_empty());
    if sound && kills > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(wrong: &str) -> ExitCode {
    eprintln!("podwire-crash: {wrong}\nusage: podwire-crash [--full] [--only TEXT] [--kills N]");
    ExitCode::from(2)
}
