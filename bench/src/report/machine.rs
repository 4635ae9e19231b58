//! What it was measured on.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::options::Options;
use crate::subject::{Programs, Subject};

/// The machine, the programs, and how busy it was.
#[derive(Debug, Clone)]
pub struct Machine {
    lines: Vec<(&'static str, String)>,
    started: Instant,
}

impl Machine {
    /// Looks before the run.
    pub fn look(options: &Options) -> Self {
        let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
        let processors = read("/proc/cpuinfo");
        let field = |name: &str| {
            let line = processors.lines().find(|line| line.starts_with(name));
            line.and_then(|line| line.split(": ").nth(1)).unwrap_or("unknown").to_owned()
        };
        let count = processors.lines().filter(|line| line.starts_with("processor")).count();
        let memory = read("/proc/meminfo");
        let memory = memory.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok());
        let release = read("/etc/os-release");
        let release = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="));
        let mut lines = vec![
            ("date", output("date", &["+%Y-%m-%d %H:%M %Z"])),
            ("processors", format!("{count} x {}", field("model name"))),
            ("memory", format!("{:.1} GB", gigabytes(memory.unwrap_or_default()))),
            ("kernel", output("uname", &["-srm"])),
            ("system", release.unwrap_or("unknown").trim_matches('"').to_owned()),
            ("real disk", disk(&options.disk)),
            ("load before", load()),
            ("Podwire", commit()),
        ];
        lines.extend(peers(&options.programs));
        lines.push(("rounds", options.rounds.to_string()));
        Self { lines, started: Instant::now() }
    }

    /// Looks again after the run.
    #[must_use]
    pub fn ended(mut self) -> Self {
        self.lines.push(("load after", load()));
        self.lines.push(("took", format!("{:.0} s", self.started.elapsed().as_secs_f64())));
        self
    }

    /// As lines of a list.
    pub fn list(&self) -> String {
        let mut text = String::new();
        for (name, value) in &self.lines {
            let _ = writeln!(text, "- {name}: {value}");
        }
        text
    }
}

fn output(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    text.ok().filter(|text| !text.is_empty()).unwrap_or_else(|| "unknown".to_owned())
}

fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn commit() -> String {
    output("git", &["describe", "--always", "--dirty"])
}

/// The kind of file system that state on disk lies on.
fn disk(path: &Path) -> String {
    output("stat", &["-f", "-c", "%T", &path.display().to_string()])
}

/// The packages that the Go plugins came in.
fn peers(programs: &Programs) -> Vec<(&'static str, String)> {
    let Some(peers) = &programs.peers else { return Vec::new() };
    let stamp = |name: &str| {
        let text = std::fs::read_to_string(peers.join(name)).unwrap_or_default();
        text.trim().to_owned()
    };
    vec![
        (Subject::GoNew.name(), stamp("sid.stamp")),
        (Subject::GoOld.name(), stamp("debian.stamp")),
    ]
}

#[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
fn gigabytes(kibibytes: u64) -> f64 {
    kibibytes as f64 * 1024.0 / 1e9
}
