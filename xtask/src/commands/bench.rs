//! `cargo xtask bench`: ours, Go's and the kernel's floor side by side.

use super::{build, install, peers, take_switch, take_value};
use crate::process::{cargo, command, run as run_process, run_for_its_errors};
use crate::{Result, workspace};

/// Builds what ships, the floor and the runner, then measures.
///
/// - `--section NAME`, as often as wanted: only these;
/// - `--rounds N`: timed rounds of a call;
/// - `--report`: writes `docs/benchmarks.md` and its plots, and after a whole run the
///   table in `README.md`;
/// - `--quick`: few rounds, then counts against `bench/limits.tsv`;
///   `--no-peers` leaves out Go, `--bless` writes the limits anew.
///
/// # Errors
/// When something can't be built, a call of ours fails or asks the kernel for
/// more than its limit.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    let report = take_switch(&mut arguments, "--report");
    let quick = take_switch(&mut arguments, "--quick");
    let bless = take_switch(&mut arguments, "--bless");
    let without_peers = take_switch(&mut arguments, "--no-peers");
    let mut passed_on = Vec::new();
    for option in ["--rounds", "--section"] {
        while let Some(value) = take_value(&mut arguments, option)? {
            passed_on.extend([option.to_owned(), value]);
        }
    }
    super::no_more(&arguments)?;
    let is_whole = !passed_on.iter().any(|argument| argument == "--section");

    let target = build::shipped_target();
    let plugins = workspace::target().join("bench-plugins");
    install::run(&["--cni-bin-dir".to_owned(), plugins.display().to_string()])?;
    run_process(cargo().args(["build", "--quiet", "--package", "podwire-bench"]))?;
    run_process(cargo().args([
        "build",
        "--quiet",
        "--profile",
        "dist",
        "--target",
        target,
        "--package",
        "podwire-floor",
    ]))?;

    let mut runner = command(&workspace::target().join("debug/podwire-bench").to_string_lossy());
    runner.arg("--plugins").arg(plugins);
    runner.arg("--podwire").arg(workspace::dist().join("podwire"));
    runner.arg("--floor").arg(workspace::target().join(target).join("dist/floor"));
    let disk = workspace::target().join("bench-state");
    std::fs::create_dir_all(&disk)?;
    runner.arg("--disk").arg(&disk);
    if !without_peers {
        peers::run(&[])?;
        runner.arg("--peers").arg(workspace::peers().canonicalize()?);
    }
    if quick {
        runner.arg("--quick");
        // Musl's allocator and start are counted with the calls.
        if is_whole && target == build::MUSL && cfg!(target_arch = "x86_64") {
            runner.arg("--limits").arg(workspace::root().join("bench/limits.tsv"));
        } else {
            println!(
                "  WARNING: counts NOT compared: the limits are for a whole run on x86_64 musl"
            );
        }
        if bless {
            runner.arg("--bless");
        }
    }
    if report {
        runner.arg("--report").arg(workspace::root().join("docs"));
    }
    let outcome = run_for_its_errors(runner.args(passed_on));
    std::fs::remove_dir_all(&disk)?;
    outcome
}
