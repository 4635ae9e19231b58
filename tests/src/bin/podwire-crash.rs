//! `cargo xtask crash`: kills every chain and the runtime at every system call.
//!
//! ```text
//! podwire-crash [--full] [--only TEXT] [--kills N] [--threads N] [--page FILE]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person.

use std::process::ExitCode;
use std::thread::available_parallelism;

use podwire_tests::crash::{
    Command, Density, Job, Subject, Tally, Verb, all, of_the_command, page, run_all_watched, table,
};

const USAGE: &str = "podwire-crash [--full] [--only TEXT] [--kills N] [--threads N] [--page FILE]";

fn main() -> ExitCode {
    let (mut density, mut only, mut page_file) = (Density::Every, String::new(), None);
    let mut threads = available_parallelism().map_or(1, usize::from);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.len()) {
            ("--full", _) => density = Density::Exhaustive,
            ("--only", 1..) => only = arguments.next().unwrap_or_default(),
            ("--page", 1..) => page_file = arguments.next(),
            ("--kills", 1..) => match arguments.next().unwrap_or_default().parse() {
                Ok(kills) => density = Density::Spread(kills),
                Err(error) => return usage(&format!("--kills: {error}")),
            },
            ("--threads", 1..) => match arguments.next().unwrap_or_default().parse() {
                Ok(number) => threads = usize::max(number, 1),
                Err(error) => return usage(&format!("--threads: {error}")),
            },
            (other, _) => return usage(&format!("unknown argument {other:?}")),
        }
    }
    let mut subjects: Vec<Box<dyn Subject>> = Vec::new();
    subjects.extend(all().into_iter().map(|chain| Box::new(chain) as Box<dyn Subject>));
    let commands = of_the_command().into_iter().map(Command::over);
    subjects.extend(commands.map(|command| Box::new(command) as Box<dyn Subject>));
    let jobs: Vec<_> = subjects
        .iter()
        .filter(|subject| subject.name().contains(&only))
        .flat_map(|subject| {
            let subject = subject.as_ref();
            [Verb::Add, Verb::Del, Verb::Gc].map(|verb| Job { subject, verb, density })
        })
        .collect();
    let tell = |tally: &Tally| {
        let (name, verb) = (&tally.subject, tally.verb.as_str());
        eprintln!("{name} {verb}: {} kills, {} leaks", tally.tried, tally.faults.len());
    };
    let tallies = run_all_watched(&jobs, threads, &tell);
    print!("{}", table(&tallies));
    if let Some(file) = page_file
        && let Err(error) = std::fs::write(&file, page(&tallies, density))
    {
        eprintln!("podwire-crash: writing {file}: {error}");
        return ExitCode::FAILURE;
    }
    let kills: usize = tallies.iter().map(|tally| tally.tried).sum();
    let sound = tallies.iter().all(|tally| tally.faults.is_empty());
    if sound && kills > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn usage(wrong: &str) -> ExitCode {
    eprintln!("podwire-crash: {wrong}\nusage: {USAGE}");
    ExitCode::from(2)
}
