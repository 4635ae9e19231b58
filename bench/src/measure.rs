//! Timing processes.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Times of one call over all rounds.
#[derive(Debug, Default, Clone)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// Adds one.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// The shortest: what the work itself costs, undisturbed.
    pub fn best(&self) -> Option<Duration> {
        self.0.iter().min().copied()
    }

    /// The middle one: what a user sees.
    pub fn median(&self) -> Option<Duration> {
        let mut sorted = self.0.clone();
        sorted.sort();
        sorted.get(sorted.len() / 2).copied()
    }
}

/// What a process printed, how long it took from its start to its end, and
/// whether it succeeded.
#[derive(Debug)]
pub struct Run {
    /// Standard output.
    pub stdout: String,
    /// From just before the start until it was reaped.
    pub time: Duration,
}

/// Runs a program with input and times it.
///
/// # Errors
/// It can't be started or failed; the text carries what it printed.
pub fn run(
    program: &str,
    arguments: &[&str],
    environment: &[(&str, &str)],
    stdin: &str,
) -> Result<Run, String> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_clear()
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .envs(environment.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let failed = |what: String| format!("{program}: {what}");
    let started = Instant::now();
    let mut child = command.spawn().map_err(|error| failed(error.to_string()))?;
    if let Some(mut pipe) = child.stdin.take() {
        // A program that doesn't read is free not to.
        let _ = pipe.write_all(stdin.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| failed(error.to_string()))?;
    let time = started.elapsed();
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err(failed(format!("{}: {stdout}{stderr}", output.status)));
    }
    Ok(Run { stdout, time })
}
