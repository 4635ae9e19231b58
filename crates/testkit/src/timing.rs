//! How long a call takes, from its start until it is reaped.

use std::io::{self, Read, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::Output;

/// A call that has ended.
#[derive(Debug, Clone)]
pub struct Timed {
    /// From just before fork until the process was reaped.
    pub wall: Duration,
    /// Processor time, in the kernel and outside, of the process and of the children
    /// that it waited for.
    pub processor: Duration,
    /// What it printed and how it ended.
    pub output: Output,
}

/// Runs a command with this input, as a runtime does: over pipes.
///
/// # Errors
/// It can't be started.
pub fn run(command: &mut Command, stdin: &[u8]) -> io::Result<Timed> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let shown = format!("{command:?}");
    let started = Instant::now();
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that doesn't read is free not to.
        let _ = pipe.write_all(stdin);
    }
    // Plugins write little to standard error: it fits into the pipe meanwhile.
    let mut texts = [Vec::new(), Vec::new()];
    if let Some(mut pipe) = child.stdout.take() {
        pipe.read_to_end(&mut texts[0])?;
    }
    if let Some(mut pipe) = child.stderr.take() {
        pipe.read_to_end(&mut texts[1])?;
    }
    let (code, processor) = reap(child.id())?;
    let wall = started.elapsed();
    let [stdout, stderr] = texts.map(|text| String::from_utf8_lossy(&text).into_owned());
    Ok(Timed { wall, processor, output: Output { command: shown, code, stdout, stderr } })
}

/// Waits for a child of ours, which nobody else reaps.
fn reap(child: u32) -> io::Result<(i32, Duration)> {
    let pid = libc::pid_t::try_from(child).map_err(io::Error::other)?;
    loop {
        let mut status = 0;
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: both pointers are to live locals; zeroes are a valid value of rusage.
        let (reaped, usage) = unsafe {
            let reaped = libc::wait4(pid, &raw mut status, 0, usage.as_mut_ptr());
            (reaped, usage.assume_init())
        };
        if reaped == pid {
            let code = if libc::WIFEXITED(status) {
                libc::WEXITSTATUS(status)
            } else {
                128 + libc::WTERMSIG(status)
            };
            return Ok((code, duration(usage.ru_utime) + duration(usage.ru_stime)));
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

fn duration(time: libc::timeval) -> Duration {
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_usec).unwrap_or_default();
    Duration::from_secs(seconds) + Duration::from_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_output_and_children_count() {
        let script = "read line; echo got $line; i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &format!("/bin/sh -c '{script}'; exit 4")]);
        let timed = run(&mut command, b"hello\n").unwrap();
        assert_eq!((timed.output.code, timed.output.stdout.as_str()), (4, "got hello\n"));
        assert!(timed.processor > Duration::from_millis(1), "{timed:?}");
        assert!(timed.wall >= Duration::from_millis(1), "{timed:?}");
    }
}
