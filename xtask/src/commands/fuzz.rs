//! `cargo xtask fuzz`: every parser of outside data under libFuzzer.
//!
//! The instrumentation is the stable compiler's; only the address sanitizer
//! asks for `RUSTC_BOOTSTRAP`. So neither a nightly toolchain nor cargo-fuzz is
//! needed, and the compiler is the very one that builds what ships. The layout
//! is cargo-fuzz's all the same.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{no_more, take_value};
use crate::process::{cargo, command, output, run as run_process, succeeds};
use crate::{Result, workspace};

/// Time for each target, in seconds, unless `--seconds` says otherwise.
const SECONDS: u64 = 60;
/// Time for all targets together in `cargo xtask test`, in seconds.
const BRIEFLY: u64 = 150;
/// An input may take this long, in seconds; a real one takes far less than a
/// thousandth.
const SLOWEST: u64 = 10;
/// Memory that a target may take, in MiB: the sanitizer takes most of it.
const MEMORY: u64 = 1024;
/// The longest input that is tried, in bytes.
const LONGEST: usize = 16 << 10;

/// What makes libFuzzer see where an input leads: edges, and compared values.
const INSTRUMENTATION: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Zsanitizer=address",
    "--cfg=fuzzing",
];

/// Builds the targets, replays the corpus, fuzzes each target for a while.
/// `--target NAME` takes one, `--seconds N` sets the time of each; 0 replays
/// only.
///
/// # Errors
/// Names the targets for which an input was found, and its file.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let seconds = take_value(&mut arguments, "--seconds")?;
    let wanted = take_value(&mut arguments, "--target")?;
    no_more(&arguments)?;
    let seconds = seconds.map_or(Ok(SECONDS), |text| text.parse())?;
    let targets = match wanted {
        Some(name) if targets()?.contains(&name) => vec![name],
        Some(name) => {
            return Err(format!("no target `{name}`; there are {}", targets()?.join(", ")).into());
        }
        None => targets()?,
    };
    fuzz(&targets, Duration::from_secs(seconds))
}

/// All targets, briefly, for continuous integration. Where no C++ compiler can
/// be had, the corpus is replayed by the ordinary tests alone, and that is
/// said.
///
/// # Errors
/// As [`run`].
pub(super) fn briefly() -> Result<()> {
    if !succeeds(command("c++").arg("--version")) {
        println!("  WARNING: NOT fuzzed: libFuzzer needs a C++ compiler (apt install g++)");
        return Ok(());
    }
    let targets = targets()?;
    let count = u64::try_from(targets.len())?;
    fuzz(&targets, Duration::from_millis(BRIEFLY * 1000 / count.max(1)))
}

/// The programs in the manifest.
fn targets() -> Result<Vec<String>> {
    let manifest = std::fs::read_to_string(workspace::root().join("fuzz/Cargo.toml"))?;
    let after_bin = manifest.split("[[bin]]").skip(1);
    let name = |part: &str| part.split('"').nth(1).map(str::to_owned);
    Ok(after_bin.filter_map(name).collect())
}

/// The compiler's own name for this machine.
fn host() -> Result<String> {
    let text = output(command("rustc").arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(line.ok_or("rustc doesn't say its host")?.to_owned())
}

fn build() -> Result<PathBuf> {
    let host = host()?;
    let folder = workspace::target().join("fuzz");
    let mut build = cargo();
    build.args(["build", "--quiet", "--package", "podwire-fuzz", "--features", "libfuzzer"]);
    // With a target named, build scripts and macros go without the flags.
    build.args(["--bins", "--profile", "fuzz", "--target", &host, "--target-dir"]).arg(&folder);
    build.env("RUSTFLAGS", INSTRUMENTATION.join(" ")).env("RUSTC_BOOTSTRAP", "1");
    run_process(&mut build)?;
    Ok(folder.join(host).join("fuzz"))
}

fn fuzz(targets: &[String], time: Duration) -> Result<()> {
    let started = Instant::now();
    let programs = build()?;
    println!("  built in {:.0} s", started.elapsed().as_secs_f64());
    let mut found = Vec::new();
    let mut total = 0;
    for target in targets {
        let begun = Instant::now();
        match one(&programs, target, time) {
            Ok(executions) => {
                let seconds = begun.elapsed().as_secs().max(1);
                println!(
                    "  {target:<20} {executions:>9} executions, {:>6} a second",
                    executions / seconds
                );
                total += executions;
            }
            Err(error) => {
                println!("  {target:<20} FAILED\n{error}");
                found.push(target.as_str());
            }
        }
    }
    println!("  {total} executions of {} targets", targets.len());
    if found.is_empty() {
        return Ok(());
    }
    Err(format!("inputs found for {}; they lie in fuzz/artifacts", found.join(", ")).into())
}

/// Replays the corpus of a target, then looks for more until the time is over.
/// What is found goes to `target/fuzz/corpus`; what fails to `fuzz/artifacts`.
fn one(programs: &Path, target: &str, time: Duration) -> Result<u64> {
    let root = workspace::root().join("fuzz");
    let seeds = root.join("corpus").join(target);
    let grown = workspace::target().join("fuzz/corpus").join(target);
    let artifacts = root.join("artifacts").join(target);
    std::fs::create_dir_all(&grown)?;
    std::fs::create_dir_all(&artifacts)?;
    let program = programs.join(target);
    let fuzzer = || {
        let mut fuzzer = command(program.to_string_lossy().as_ref());
        // Leaks are looked for at the end only: at each input it is slow.
        fuzzer.env("ASAN_OPTIONS", "detect_leaks=0");
        fuzzer.args([
            &format!("-timeout={SLOWEST}"),
            &format!("-rss_limit_mb={MEMORY}"),
            &format!("-max_len={LONGEST}"),
            &format!("-artifact_prefix={}/", artifacts.display()),
            "-print_final_stats=1",
        ]);
        fuzzer
    };
    let mut executions = executions(fuzzer().arg("-runs=0").args([&seeds, &grown]))?;
    if !time.is_zero() {
        // libFuzzer counts whole seconds.
        let seconds = time.as_secs().max(1);
        let limit = format!("-max_total_time={seconds}");
        executions += self::executions(fuzzer().arg(limit).args([&grown, &seeds]))?;
    }
    Ok(executions)
}

/// Runs it to its end, and reads how many inputs it tried.
fn executions(fuzzer: &mut std::process::Command) -> Result<u64> {
    let outcome = fuzzer.output()?;
    let text = String::from_utf8_lossy(&outcome.stderr).into_owned();
    if !outcome.status.success() {
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines.get(lines.len().saturating_sub(60)..).unwrap_or_default();
        return Err(tail.join("\n").into());
    }
    let number = text.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    Ok(number.and_then(|number| number.trim().parse().ok()).unwrap_or_default())
}
