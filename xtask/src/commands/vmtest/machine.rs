//! The virtual machine: an emulated processor, memory, a serial line.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::kernel::Kernel;
use super::report::Line;
use crate::Result;
use crate::process::command;

/// A start takes four seconds, on a busy machine some twenty.
const START: Duration = Duration::from_mins(2);

/// Parameters of every boot. Without `no_timer_check` the kernel gives up when a
/// busy machine lets its first timer interrupts come late. With `norandmaps` a program
/// lies at the same addresses each time it is started: the emulator keeps what it
/// translated by address, and else would translate it again for every process, which
/// took half of all its time.
const FIXED: &str = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check norandmaps";

/// An old one: of newer features some make the emulator slower, as copying by
/// `rep movsb`, which it does byte by byte, or SMAP, which translates addresses anew
/// for each access to user space.
const PROCESSOR: &str = "Nehalem";

/// What became of a boot.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// The kernel, if it started.
    pub(super) release: Option<String>,
    /// How many tests passed.
    pub(super) passed: usize,
    /// The names of those that failed.
    pub(super) failed: Vec<String>,
    /// Whether the guest said that it was through.
    pub(super) ended: bool,
    /// The processor time that the emulator took, in seconds.
    pub(super) processor_seconds: u64,
    /// The last lines that were not of the report, for messages.
    pub(super) last: Vec<String>,
}

/// Boots and lets the guest run its tests; shows what it says. Once it is up it may say
/// nothing for so long as `silence`.
///
/// # Errors
/// When the emulator can't be started. A guest that hangs is killed, and its
/// outcome shows it.
pub(super) fn boot(
    kernel: &Kernel,
    image: &Path,
    parameters: &str,
    silence: Duration,
) -> Result<Outcome> {
    // Software emulation everywhere: the same on a laptop and on a build
    // machine that is a virtual machine itself.
    let mut emulator = command("qemu-system-x86_64");
    emulator
        .args(["-machine", "q35,accel=tcg", "-cpu", PROCESSOR, "-smp", "2", "-m", "2048"])
        .args(["-nodefaults", "-no-reboot", "-display", "none", "-serial", "stdio"])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(image)
        .arg("-append")
        .arg(format!("{FIXED} {parameters}"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let child =
        emulator.spawn().map_err(|error| format!("qemu-system-x86_64: {error}; run setup"))?;
    let mut running = Running(child);
    let serial = running.0.stdout.take().ok_or("no serial line")?;
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || read_lines(serial, &sender));
    let mut outcome = follow(&lines, silence);
    outcome.processor_seconds = processor_seconds(running.0.id());
    Ok(outcome)
}

/// The processor time that a child has had, which tells more than the clock on a busy
/// machine: fields 14 and 15 of `proc_pid_stat(5)`, 100 to the second.
fn processor_seconds(child: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
    // The name before may hold blanks.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>() / 100
}

/// Sends line after line, whatever bytes they hold, until there is an end on
/// either side.
fn read_lines(serial: impl Read, sender: &mpsc::Sender<String>) {
    let mut serial = BufReader::new(serial);
    let mut bytes = Vec::new();
    while serial.read_until(b'\n', &mut bytes).is_ok_and(|read| read > 0) {
        let line = String::from_utf8_lossy(&bytes).trim_end().to_owned();
        if sender.send(line).is_err() {
            return;
        }
        bytes.clear();
    }
}

fn follow(lines: &mpsc::Receiver<String>, silence: Duration) -> Outcome {
    let mut outcome = Outcome::default();
    let started = Instant::now();
    loop {
        let patience = if outcome.release.is_some() {
            silence
        } else {
            START.saturating_sub(started.elapsed())
        };
        match lines.recv_timeout(patience) {
            Ok(line) => take(&mut outcome, line, started),
            Err(mpsc::RecvTimeoutError::Disconnected) => return outcome,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                println!("  the guest says nothing; killed after {:?}", started.elapsed());
                return outcome;
            }
        }
    }
}

fn take(outcome: &mut Outcome, line: String, started: Instant) {
    match Line::parse(&line) {
        Some(Line::Up { release }) => {
            println!("  kernel {release} up after {:.1} s", started.elapsed().as_secs_f64());
            outcome.release = Some(release);
        }
        Some(Line::Passed { name, milliseconds }) => {
            println!("  PASS {milliseconds:>6} ms  {name}");
            outcome.passed += 1;
        }
        Some(Line::Failed { name, milliseconds }) => {
            println!("  FAIL {milliseconds:>6} ms  {name}");
            outcome.failed.push(name);
        }
        Some(Line::End) => outcome.ended = true,
        None => {
            if outcome.release.is_some() {
                println!("  | {line}");
            }
            outcome.last.push(line);
            if outcome.last.len() > 20 {
                outcome.last.remove(0);
            }
        }
    }
}

/// An emulator that doesn't outlive its use.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Already gone, in the usual case.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::{follow, read_lines};

    fn outcome(serial: &str) -> super::Outcome {
        let (sender, lines) = mpsc::channel();
        read_lines(serial.as_bytes(), &sender);
        drop(sender);
        follow(&lines, Duration::from_mins(1))
    }

    #[test]
    fn an_outcome_counts_what_the_guest_reports() {
        let outcome =
            outcome("noise\r\n@vm up 6.1\r\n@vm passed 1 a b\r\n@vm failed 2 c d\r\n@vm end\r\n");
        assert_eq!(outcome.release.as_deref(), Some("6.1"));
        assert_eq!(outcome.passed, 1);
        assert_eq!(outcome.failed, ["c d"]);
        assert!(outcome.ended);
    }

    #[test]
    fn a_guest_that_dies_has_not_ended() {
        let outcome = outcome("@vm up 6.1\r\n@vm passed 1 a b\r\nKernel panic");
        assert!(!outcome.ended);
        assert_eq!(outcome.last, ["Kernel panic"]);
    }
}
