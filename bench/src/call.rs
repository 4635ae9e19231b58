//! One execution of a program.

use std::path::{Path, PathBuf};
use std::process::Command;

use podwire_testkit::Output;
use podwire_testkit::kill::census;
use podwire_testkit::timing;
use serde_json::{Value, json};

use crate::Outcome;
use crate::bench::Pass;
use crate::samples::Counts;

/// The version of every request: the newest that all releases speak.
pub const VERSION: &str = "1.0.0";

/// A program with what it is given.
#[derive(Debug, Clone)]
pub struct Call {
    program: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(&'static str, String)>,
    stdin: String,
}

/// Whom a plugin call is for.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The container's id.
    pub container: &'a str,
    /// Its network namespace.
    pub netns: &'a str,
    /// The interface in it.
    pub ifname: &'a str,
}

impl Call {
    /// A program with arguments.
    pub fn program(program: &Path, arguments: &[&str]) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
            stdin: String::new(),
        }
    }

    /// A plugin, as a runtime executes it.
    pub fn plugin(directory: &Path, verb: &str, target: Target<'_>, config: &Value) -> Self {
        let name = config.get("type").and_then(Value::as_str).unwrap_or_default();
        let mut call = Self::program(&directory.join(name), &[]);
        call.environment = vec![
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", target.container.to_owned()),
            ("CNI_NETNS", target.netns.to_owned()),
            ("CNI_IFNAME", target.ifname.to_owned()),
            ("CNI_PATH", directory.display().to_string()),
        ];
        call.stdin = config.to_string();
        call
    }

    /// A plugin that is executed as an IPAM delegate of another type.
    #[must_use]
    pub fn by_name(mut self, name: &str) -> Self {
        self.program.set_file_name(name);
        self
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).env_clear();
        command.env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs it, timed or counted as the pass wants.
    ///
    /// # Errors
    /// It can't be started or fails; carries what it printed.
    pub fn run(&self, pass: Pass) -> Outcome<Run> {
        let shown = || {
            let verb = self.environment.first().map_or("", |(_, verb)| verb);
            format!("{} {verb}{}", self.program.display(), self.arguments.join(" "))
        };
        let mut command = self.command();
        let run = if pass == Pass::Counted {
            let (census, output) = census::take(command, self.stdin.as_bytes());
            if std::env::var_os("PODWIRE_BENCH_CALLS").is_some() {
                use std::io::Write as _;
                let _ = writeln!(std::io::stderr(), "{}: {}", shown(), census.histogram());
            }
            Run { counts: Some(Counts::of(&census)), times: None, stdout: said(output)? }
        } else {
            let timed = timing::run(&mut command, self.stdin.as_bytes())
                .map_err(|error| format!("{}: {error}", shown()))?;
            let times = Some((timed.wall, timed.processor));
            Run { counts: None, times, stdout: said(timed.output)? }
        };
        Ok(run)
    }
}

fn said(output: Output) -> Outcome<String> {
    if output.code == 0 {
        return Ok(output.stdout);
    }
    Err(format!("failed with {}: {}{}", output.code, output.stdout, output.stderr))
}

/// What a run gave.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Wall and processor time, if it was timed.
    pub times: Option<(std::time::Duration, std::time::Duration)>,
    /// Counts, if it was counted.
    pub counts: Option<Counts>,
    /// Standard output.
    pub stdout: String,
}

impl Run {
    /// This and what followed it, as one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let times = match (self.times, next.times) {
            (Some(first), Some(second)) => Some((first.0 + second.0, first.1 + second.1)),
            (first, second) => first.or(second),
        };
        let counts = match (self.counts, next.counts) {
            (Some(first), Some(second)) => Some(first.and(second)),
            (first, second) => first.or(second),
        };
        Self { times, counts, stdout: next.stdout }
    }
}

/// A configuration with the result of the plugin before.
///
/// # Errors
/// The result is no JSON.
pub fn with_previous(config: &Value, result: &str) -> Outcome<Value> {
    let result: Value = serde_json::from_str(result).map_err(|error| error.to_string())?;
    Ok(with(config, json!({"prevResult": result})))
}

/// A configuration with more keys.
#[must_use]
pub fn with(config: &Value, more: Value) -> Value {
    let mut config = config.clone();
    if let (Some(object), Value::Object(more)) = (config.as_object_mut(), more) {
        object.extend(more);
    }
    config
}
