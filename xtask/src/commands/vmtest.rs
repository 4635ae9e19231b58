//! `cargo xtask vmtest`: system tests on other kernels, in a virtual machine.
//!
//! Test programs whose names begin with `vm_` need what an ordinary kernel may
//! lack; they run only here, and nowhere are they skipped. Some others run
//! here too, since an older kernel may answer otherwise. The guest is Debian's
//! own kernel in software emulation, with this machine's programs.

mod cpio;
mod guest;
mod image;
mod kernel;
mod machine;
mod report;
mod selection;

use std::time::{Duration, Instant};

use self::kernel::Release;
use self::machine::Outcome;
use self::selection::Test;
use super::{build, no_more, take_switch, take_value};
use crate::process::{cargo, run as run_process};
use crate::{Result, workspace};

/// How much longer than a test may take the guest may say nothing.
const SLACK: Duration = Duration::from_mins(1);

/// One start of a kernel.
struct Boot {
    /// What `--kernel` selects.
    name: &'static str,
    release: Release,
    /// What is added to the kernel's command line.
    parameters: &'static str,
    /// Which tests, as filters of cargo-nextest.
    tests: &'static [&'static str],
    need: Need,
}

/// When a start belongs to a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    /// Always.
    Always,
    /// Always, but the run may do without when the kernel can't be had.
    IfThere,
}

/// Tests that run everywhere and in the guest once more, since an older kernel
/// may answer otherwise: nftables, traffic control and links to the last
/// attribute, and what packets make of them. None that bounds times or crowds,
/// which emulation breaks, nor one that needs the Go plugins.
const AGAIN: &str = "package(podwire-netlink) & binary(/^(link|tc|nft_[a-z]+)$/) \
    | binary(portmap) & test(/^traffic::/) \
    | binary(masquerade) & test(/^packets::/) \
    | binary(spoof_check) & test(/^frames::/) \
    | binary(firewall) & test(/^isolation::b110_isolated/) \
    | binary(bridge) & test(two_containers_and_the_host_talk_over_both_families)";

/// Test programs that run only in the guest.
const ONLY_HERE: &str = "binary(/^vm_/) - binary(/^vm_without_ipv6/)";

/// Every start, in order.
const BOOTS: &[Boot] = &[
    Boot {
        name: "6.1",
        release: kernel::OLDER,
        parameters: "",
        tests: &[ONLY_HERE, AGAIN],
        need: Need::Always,
    },
    Boot {
        name: "6.1-without-ipv6",
        release: kernel::OLDER,
        parameters: "ipv6.disable=1",
        tests: &["binary(/^vm_without_ipv6/)"],
        need: Need::Always,
    },
    Boot {
        name: "6.12",
        release: kernel::NEWER,
        parameters: "",
        // The rows of CHECK take a minute, and are the same on any kernel.
        tests: &["binary(/^vm_/) - binary(/^vm_(without_ipv6|crash|interop|check)/)"],
        need: Need::IfThere,
    },
];

/// Runs the tests of every boot, or of one (`--kernel`), or only some tests (`--filter`:
/// a filter of cargo-nextest, or a part of a test's name). `--kills N` has tests that
/// kill do it so often, and shows what they say.
///
/// # Errors
/// Names the boots with failures.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let mut arguments = arguments.to_vec();
    if take_switch(&mut arguments, "--inside") {
        no_more(&arguments)?;
        return guest::run();
    }
    let refresh = take_switch(&mut arguments, "--refresh");
    let name = take_value(&mut arguments, "--kernel")?;
    let filter = take_value(&mut arguments, "--filter")?;
    let kills = take_value(&mut arguments, "--kills")?.map(|kills| kills.parse()).transpose()?;
    no_more(&arguments)?;
    if !cfg!(target_arch = "x86_64") {
        return Err("Debian's kernels for x86_64 are what the guest runs; this isn't one".into());
    }
    let is_meant = |boot: &&Boot| name.as_ref().is_none_or(|name| name == boot.name);
    let boots: Vec<&Boot> = BOOTS.iter().filter(is_meant).collect();
    if boots.is_empty() {
        let names: Vec<&str> = BOOTS.iter().map(|boot| boot.name).collect();
        return Err(format!("--kernel is one of {}", names.join(", ")).into());
    }
    let filter = filter.map(|filter| {
        if filter.contains('(') { filter } else { format!("test({filter}) | binary({filter})") }
    });
    // What tests execute; they find it beside themselves.
    run_process(cargo().args(["build", "--workspace", "--bins", "--examples", "--quiet"]))?;
    build::run(&[])?;
    let mut failed = Vec::new();
    for boot in boots {
        let started = Instant::now();
        println!("\n-- kernel {}", boot.name);
        let outcome = one(boot, filter.as_deref(), kills, refresh, name.is_some());
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(Some(passed)) => println!("  {}: {passed} tests passed, {seconds:.1} s", boot.name),
            Ok(None) => {}
            Err(error) => {
                println!("  {} FAILED after {seconds:.1} s: {error}", boot.name);
                failed.push(format!("kernel {}: {error}", boot.name));
            }
        }
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

/// Fetches, builds, boots, judges. None when the kernel can't be had and that
/// is allowed.
fn one(
    boot: &Boot,
    filter: Option<&str>,
    kills: Option<u32>,
    refresh: bool,
    asked_for: bool,
) -> Result<Option<usize>> {
    let filters = filter.map_or_else(|| boot.tests.to_vec(), |filter| vec![filter]);
    let tests = selection::select(&filters)?;
    let kernel = match boot.release.fetch(refresh) {
        Ok(kernel) => kernel,
        Err(error) if boot.need == Need::IfThere && !asked_for => {
            println!("  WARNING: kernel {} can't be had: {error}", boot.name);
            println!("  WARNING: NOTHING was tested on kernel {}", boot.name);
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let image = workspace::target().join(format!("vm/{}.cpio", boot.name));
    image::write(&kernel, &tests, &image)?;
    let size = std::fs::metadata(&image)?.len() / 1_000_000;
    println!("  {}, {} tests, image {size} MB", kernel.version, tests.len());
    // What the kernel doesn't know it puts into the environment of the first process.
    let kills_of_each = kills.map(|kills| format!("{}={kills}", guest::KILLS)).unwrap_or_default();
    let parameters = format!("{} {kills_of_each}", boot.parameters);
    let start = || machine::boot(&kernel, &image, &parameters, guest::deadline(kills) + SLACK);
    let mut outcome = start()?;
    if outcome.release.is_none() {
        println!("  the guest did not start, once more; its last lines:");
        outcome.last.iter().for_each(|line| println!("  | {line}"));
        outcome = start()?;
    }
    println!("  the emulator took {} s of processor time", outcome.processor_seconds);
    judge(&outcome, &tests).map(Some)
}

/// All selected tests have passed, or an error.
fn judge(outcome: &Outcome, tests: &[Test]) -> Result<usize> {
    if outcome.release.is_none() {
        return Err(format!("the guest did not start: {}", outcome.last.join("\n")).into());
    }
    if !outcome.failed.is_empty() {
        let (failed, all) = (outcome.failed.len(), tests.len());
        return Err(format!("{failed} of {all} failed: {}", outcome.failed.join(", ")).into());
    }
    if !outcome.ended || outcome.passed != tests.len() {
        let (passed, all) = (outcome.passed, tests.len());
        return Err(format!("the guest ended after {passed} of {all} tests").into());
    }
    Ok(outcome.passed)
}

#[cfg(test)]
mod tests {
    use super::{Outcome, Test, judge};

    #[test]
    fn only_a_guest_that_passed_every_test_has_passed() {
        let test = Test {
            program: "/t".into(),
            folder: "/".into(),
            suite: "s".to_owned(),
            name: "n".to_owned(),
        };
        let good = || Outcome {
            release: Some("6.1".to_owned()),
            passed: 1,
            failed: Vec::new(),
            ended: true,
            processor_seconds: 0,
            last: Vec::new(),
        };
        let tests = [test];
        assert_eq!(judge(&good(), &tests).unwrap(), 1);
        assert!(judge(&Outcome { ended: false, ..good() }, &tests).is_err());
        assert!(judge(&Outcome { passed: 0, ..good() }, &tests).is_err());
        assert!(judge(&Outcome { failed: vec!["n".to_owned()], ..good() }, &tests).is_err());
        assert!(judge(&Outcome { release: None, ..good() }, &tests).is_err());
    }
}
