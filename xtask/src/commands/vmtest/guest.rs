//! Inside the guest: runs the tests of the list, each in a process of its own
//! as cargo-nextest does, and reports by lines.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::report::Line;
use super::selection::Test;
use crate::Result;

/// Where the list is.
pub(super) const LIST: &str = "/vmtest/tests";
/// The variable in which tests that kill find how often.
pub(super) const KILLS: &str = "PODWIRE_VM_KILLS";
/// No test may take longer; emulation is some twenty times slower than this
/// machine.
const DEADLINE: Duration = Duration::from_mins(4);
/// How long a kill may take, with all that is looked at then.
const OF_A_KILL: Duration = Duration::from_secs(30);
/// Tests at the same time; the guest has two processors, and much is waiting.
const AT_ONCE: usize = 3;

/// The list as text: four fields a line.
pub(super) fn write_list(tests: &[Test]) -> String {
    let mut text = String::new();
    for test in tests {
        let (program, folder) = (test.program.display(), test.folder.display());
        let _ = writeln!(text, "{program}\t{folder}\t{}\t{}", test.suite, test.name);
    }
    text
}

fn read_list(text: &str) -> Result<Vec<Test>> {
    let read = |line: &str| {
        let mut fields = line.split('\t');
        Some(Test {
            program: fields.next()?.into(),
            folder: fields.next()?.into(),
            suite: fields.next()?.to_owned(),
            name: fields.next()?.to_owned(),
        })
    };
    let line = |line: &str| read(line).ok_or_else(|| format!("not a test: {line}").into());
    text.lines().map(line).collect()
}

/// How long a test may take.
pub(super) fn deadline(kills: Option<u32>) -> Duration {
    DEADLINE + OF_A_KILL * kills.unwrap_or_default()
}

/// Runs them all. The outcome is in the lines, not in the exit status.
///
/// # Errors
/// When there is no list.
pub(super) fn run() -> Result<()> {
    let tests = read_list(&std::fs::read_to_string(LIST)?)?;
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease")?;
    println!("{}", Line::Up { release: release.trim().to_owned() });
    let kills: Option<u32> = std::env::var(KILLS).ok().map(|kills| kills.parse()).transpose()?;
    let next = AtomicUsize::new(0);
    let screen = Mutex::new(());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(test) = tests.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let started = Instant::now();
                    let outcome = run_one(test, deadline(kills));
                    let name = format!("{} {}", test.suite, test.name);
                    let milliseconds = started.elapsed().as_millis();
                    // One report at a time, or their lines would mix.
                    let _only = screen.lock().unwrap_or_else(PoisonError::into_inner);
                    match outcome {
                        Ok(said) => {
                            if kills.is_some() {
                                println!("---- {name}\n{}", said.trim_end());
                            }
                            println!("{}", Line::Passed { name, milliseconds });
                        }
                        Err(error) => {
                            println!("---- {name}\n{}", error.to_string().trim_end());
                            println!("{}", Line::Failed { name, milliseconds });
                        }
                    }
                }
            });
        }
    });
    println!("{}", Line::End);
    Ok(())
}

/// What it said, when it has passed.
fn run_one(test: &Test, deadline: Duration) -> Result<String> {
    let output = output_file(test);
    let file = std::fs::File::create(&output)?;
    let mut child = Command::new(&test.program)
        .args(["--exact", &test.name, "--nocapture", "--test-threads", "1"])
        .current_dir(&test.folder)
        .env("CARGO_MANIFEST_DIR", &test.folder)
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        // What a test leaves running goes with its group.
        .process_group(0)
        .spawn()?;
    let group = format!("-{}", child.id());
    let (sender, receiver) = mpsc::channel();
    let waiting = std::thread::spawn(move || {
        let _ = sender.send(child.wait());
    });
    let ended = receiver.recv_timeout(deadline);
    // Fails when nothing of the group is left, which is the usual end.
    let _ = Command::new("kill").args(["-9", "--", &group]).stderr(Stdio::null()).status();
    let _ = waiting.join();
    let said = String::from_utf8_lossy(&std::fs::read(&output)?).into_owned();
    let _ = std::fs::remove_file(&output);
    match ended {
        // A name that the program doesn't know is no failure to it.
        Ok(Ok(status)) if status.success() && said.contains("1 passed") => Ok(said),
        Ok(Ok(status)) => Err(format!("{said}\n{status}").into()),
        Ok(Err(error)) => Err(format!("{said}\n{error}").into()),
        Err(_) => Err(format!("{said}\nstill running after {} s", deadline.as_secs()).into()),
    }
}

fn output_file(test: &Test) -> PathBuf {
    let name: String = format!("{}-{}", test.suite, test.name)
        .chars()
        .map(|letter| if letter.is_alphanumeric() { letter } else { '-' })
        .collect();
    Path::new("/vmtest").join(name)
}

#[cfg(test)]
mod tests {
    use super::{Test, read_list, write_list};

    #[test]
    fn the_list_is_read_as_it_was_written() {
        let test = |name: &str| Test {
            program: "/t/portmap-1".into(),
            folder: "/tests".into(),
            suite: "tests::portmap".to_owned(),
            name: name.to_owned(),
        };
        let tests = vec![test("a"), test("life::b")];
        assert_eq!(read_list(&write_list(&tests)).unwrap(), tests);
        assert!(read_list("only\ttwo").is_err());
    }
}
