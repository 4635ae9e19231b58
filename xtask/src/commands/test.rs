//! `cargo xtask test`: everything that CI runs.

use std::time::{Duration, Instant};

use super::{bench, build, fuzz, no_more, package, peers, setup, take_switch, tidy, vmtest};
use crate::process::{cargo, command, run as run_process, succeeds};
use crate::{Result, workspace};

/// One step: its name and what it does.
type Step = (&'static str, fn() -> Result<()>);

/// In this order: what others need first, then what fails fastest.
const STEPS: &[Step] = &[
    ("setup", || setup::run(&[])),
    ("peers", || peers::run(&[])),
    ("format", || run_process(cargo().args(["fmt", "--all", "--check"]))),
    ("tidy", || tidy::run(&[])),
    ("deny", deny),
    ("clippy", clippy),
    ("dist", || build::run(&[])),
    ("package", || package::run(&["--built".to_owned()])),
    ("programs", programs),
    ("doctests", || run_process(cargo().args(["test", "--workspace", "--doc", "--quiet"]))),
    ("bench", counts),
    ("tests", tests),
    ("fuzz", fuzz::briefly),
    ("vmtest", other_kernels),
];

/// What `--fast` leaves out.
const SLOW: &[&str] = &["peers", "deny", "fuzz", "vmtest"];

/// Runs every step, also after a failure, and ends with a table.
///
/// # Errors
/// Names the steps that failed.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let fast = take_switch(&mut arguments, "--fast");
    no_more(&arguments)?;

    let mut outcomes: Vec<(&str, Option<Result<()>>, Duration)> = Vec::new();
    for (name, work) in STEPS {
        if fast && SLOW.contains(name) {
            println!("\n== {name}: LEFT OUT by --fast; CI runs it");
            outcomes.push((name, None, Duration::ZERO));
            continue;
        }
        println!("\n== {name}");
        let started = Instant::now();
        let outcome = work();
        if let Err(error) = &outcome {
            println!("{name} FAILED: {error}");
        }
        outcomes.push((name, Some(outcome), started.elapsed()));
    }
    summarize(&outcomes)
}

fn summarize(outcomes: &[(&str, Option<Result<()>>, Duration)]) -> Result<()> {
    println!("\n== summary");
    let mut failed = Vec::new();
    for (name, outcome, took) in outcomes {
        let word = match outcome {
            Some(Ok(())) => "ok",
            None => "LEFT OUT",
            Some(Err(_)) => {
                failed.push(*name);
                "FAILED"
            }
        };
        println!("  {name:<10} {word:<8} {:>7.1} s", took.as_secs_f64());
    }
    if failed.is_empty() {
        return Ok(());
    }
    for (name, outcome, _) in outcomes {
        if let Some(Err(error)) = outcome {
            println!("  {name}: {error}");
        }
    }
    Err(format!("failed: {}", failed.join(", ")).into())
}

fn clippy() -> Result<()> {
    run_process(cargo().args([
        "clippy",
        "--workspace",
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))
}

fn deny() -> Result<()> {
    run_process(cargo().args([
        "deny",
        "--log-level",
        "error",
        "check",
        "licenses",
        "bans",
        "sources",
    ]))?;
    // The advisory database is a git repository that many build machines
    // can't reach. Where it can be had, its word counts.
    if succeeds(command("timeout").args(["60", "cargo", "deny", "fetch", "db"])) {
        run_process(cargo().args(["deny", "check", "advisories"]))
    } else {
        println!("  advisories NOT checked: their database can't be reached from here");
        Ok(())
    }
}

/// The programs and examples that system tests execute.
fn programs() -> Result<()> {
    run_process(cargo().args(["build", "--workspace", "--bins", "--examples", "--quiet"]))
}

/// What calls ask of the kernel, against their limits. No time fails it.
fn counts() -> Result<()> {
    bench::run(&["--quick".to_owned(), "--no-peers".to_owned()])
}

fn tests() -> Result<()> {
    run_process(
        cargo()
            .args(["nextest", "run", "--workspace", "--no-tests", "fail"])
            .env("PODWIRE_PEERS_DIR", workspace::peers()),
    )
}

fn other_kernels() -> Result<()> {
    if cfg!(target_arch = "x86_64") {
        return vmtest::run(&[]);
    }
    println!("  WARNING: other kernels NOT tested: the virtual machine is of x86_64 only");
    Ok(())
}
