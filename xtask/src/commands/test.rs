//! `cargo xtask test`: everything that CI runs.

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{
    bench, build, fuzz, no_more, package, peers, setup, take_switch, take_value, tidy, vmtest,
};
use crate::process::{cargo, command, run as run_process, succeeds, this_program};
use crate::{Result, workspace};

/// One step: its name and what it does.
type Step = (&'static str, fn() -> Result<()>);

/// In this order: what others need first, then what fails fastest. Steps of one group
/// run at once: while a link or a virtual machine keeps one processor busy, or tests wait
/// for the kernel, something else is done.
const GROUPS: &[&[Step]] = &[
    &[("setup", || setup::run(&[]))],
    &[("peers", || peers::run(&[]))],
    &[("format", || run_process(cargo().args(["fmt", "--all", "--check"])))],
    &[("tidy", || tidy::run(&[]))],
    &[("deny", deny)],
    &[("clippy", clippy), ("dist", || build::run(&[]))],
    &[("package", || package::run(&["--built".to_owned()]))],
    &[("programs", programs)],
    &[("doctests", || run_process(cargo().args(["test", "--workspace", "--doc", "--quiet"])))],
    &[("bench", counts)],
    &[("tests", tests), ("rebuild", package::rebuild)],
    &[("vmtest", other_kernels), ("fuzz", fuzz::briefly)],
];

/// What `--fast` leaves out.
const SLOW: &[&str] = &["peers", "deny", "rebuild", "fuzz", "vmtest"];

/// What a step came to; `None` where it was left out.
struct Outcome {
    name: &'static str,
    result: Option<Result<()>>,
    took: Duration,
}

/// Runs every step, also after a failure, and ends with a table. `--step NAME` runs
/// one alone.
///
/// # Errors
/// Names the steps that failed.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let fast = take_switch(&mut arguments, "--fast");
    let only = take_value(&mut arguments, "--step")?;
    no_more(&arguments)?;
    if let Some(name) = only {
        let mut steps = GROUPS.iter().copied().flatten();
        let step = steps.find(|(known, _)| *known == name);
        return step.ok_or_else(|| format!("no step `{name}`"))?.1();
    }

    let mut outcomes = Vec::new();
    for group in GROUPS {
        let is_left_out = |(name, _): &&Step| fast && SLOW.contains(name);
        for (name, _) in group.iter().filter(is_left_out) {
            println!("\n== {name}: LEFT OUT by --fast; CI runs it");
            outcomes.push(Outcome { name, result: None, took: Duration::ZERO });
        }
        let wanted: Vec<_> = group.iter().filter(|step| !is_left_out(step)).collect();
        if let Some((first, others)) = wanted.split_first() {
            outcomes.extend(at_once(first, others)?);
        }
    }
    summarize(&outcomes)
}

/// Runs one step in this process, with its output shown, and others beside it in
/// processes of their own, whose output is shown when it is whole.
fn at_once(first: &Step, others: &[&Step]) -> Result<Vec<Outcome>> {
    let beside: Vec<_> =
        others.iter().map(|(name, _)| Beside::start(name)).collect::<Result<_>>()?;
    let (name, work) = first;
    println!("\n== {name}");
    let started = Instant::now();
    let result = work();
    let mut outcomes = vec![told(name, result, started.elapsed())];
    for step in beside {
        outcomes.push(step.end()?);
    }
    Ok(outcomes)
}

fn told(name: &'static str, result: Result<()>, took: Duration) -> Outcome {
    if let Err(error) = &result {
        println!("{name} FAILED: {error}");
    }
    Outcome { name, result: Some(result), took }
}

/// A step in a process of its own.
struct Beside {
    name: &'static str,
    /// Waits for it; says how it ended and how long it took.
    waiting: JoinHandle<std::io::Result<(ExitStatus, Duration)>>,
    output: PathBuf,
}

impl Beside {
    fn start(name: &'static str) -> Result<Self> {
        println!("\n== {name}: begun, beside the next; its output follows");
        let output = workspace::target().join(format!("step-{name}.log"));
        let file = std::fs::File::create(&output)?;
        let mut child = this_program();
        child.args(["test", "--step", name]).stdin(Stdio::null());
        let started = Instant::now();
        let child = child.stdout(file.try_clone()?).stderr(file).spawn();
        let mut child = child.map_err(|error| format!("can't start the step {name}: {error}"))?;
        let waiting = std::thread::spawn(move || Ok((child.wait()?, started.elapsed())));
        Ok(Self { name, waiting, output })
    }

    /// Waits for its end and shows its output.
    fn end(self) -> Result<Outcome> {
        let (status, took) = self.waiting.join().map_err(|_| "the waiting thread panicked")??;
        println!("\n== {}", self.name);
        let output = std::fs::read(&self.output)?;
        let output = String::from_utf8_lossy(&output);
        print!("{output}");
        let result = if status.success() {
            Ok(())
        } else {
            // What the step said last, which is why it failed.
            let last = output.lines().last().unwrap_or_default();
            Err(format!("{status}: {last}").into())
        };
        Ok(told(self.name, result, took))
    }
}

fn summarize(outcomes: &[Outcome]) -> Result<()> {
    println!("\n== summary");
    let mut failed = Vec::new();
    for Outcome { name, result, took } in outcomes {
        let word = match result {
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
    for Outcome { name, result, .. } in outcomes {
        if let Some(Err(error)) = result {
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
