//! `cargo xtask crash`: kills every chain and the runtime at every system call.
//!
//! ```text
//! podwire-crash [--full] [--only TEXT] [--kills N] [--threads N] [--page FILE]
//!     [--progress FILE]
//! ```
#![allow(clippy::print_stdout, clippy::print_stderr)] // It talks to a person.

use std::process::ExitCode;
use std::thread::available_parallelism;

use podwire_tests::crash::{
    Command, Density, Job, Progress, Subject, Tally, Verb, all, of_the_command, page,
    run_all_watched, table,
};

const USAGE: &str = "podwire-crash [--full] [--only TEXT] [--kills N] [--threads N] \
    [--page FILE] [--progress FILE]";

fn main() -> ExitCode {
    let (mut density, mut only) = (Density::Every, String::new());
    let (mut page_file, mut progress_file) = (None, None);
    let mut threads = available_parallelism().map_or(1, usize::from);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match (argument.as_str(), arguments.len()) {
            ("--full", _) => density = Density::Exhaustive,
            ("--only", 1..) => only = arguments.next().unwrap_or_default(),
            ("--page", 1..) => page_file = arguments.next(),
            ("--progress", 1..) => progress_file = arguments.next(),
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
    let progress = match progress_file.map(|file| Progress::open(file.as_ref(), density)) {
        Some(Err(error)) => return usage(&format!("--progress: {error}")),
        Some(Ok(progress)) => Some(progress),
        None => None,
    };
    let of_before = |job: &Job<'_>| progress.as_ref()?.of(job.subject.name(), job.verb).cloned();
    let all: Vec<_> = subjects
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
        if let Some(progress) = &progress {
            progress.note(tally);
        }
    };
    let jobs: Vec<_> = all.iter().filter(|job| of_before(job).is_none()).copied().collect();
    let mut run = run_all_watched(&jobs, threads, &tell).into_iter();
    let tallies: Vec<_> =
        all.iter().filter_map(|job| of_before(job).or_else(|| run.next())).collect();
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
