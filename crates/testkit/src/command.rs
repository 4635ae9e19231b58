//! Running a program to its end and showing all of it when it went wrong.

use std::time::Duration;

use podwire_sys::process::{ChildSpec, Exit, Outcome, run};
use serde_json::Value;

/// No program of a test may run longer.
pub(crate) const PATIENCE: Duration = Duration::from_mins(2);

/// What a program said and how it ended.
#[derive(Debug, Clone)]
pub struct Output {
    /// The command line, for messages.
    pub command: String,
    /// The exit status; 128 and the signal's number when a signal ended it.
    pub code: i32,
    /// What it wrote to its standard output.
    pub stdout: String,
    /// What it wrote to its standard error.
    pub stderr: String,
}

impl Output {
    pub(crate) fn new(command: String, outcome: &Outcome) -> Self {
        assert!(outcome.stopped.is_none(), "{command}: {:?} {outcome:?}", outcome.stopped);
        let code = match outcome.exit {
            Exit::Code(code) => code,
            Exit::Signal(number) => 128 + number,
        };
        let (stdout, stderr) = (outcome.stdout.text(), outcome.stderr.text());
        Self { command, code, stdout: stdout.into_owned(), stderr: stderr.into_owned() }
    }

    /// Panics unless the exit status is 0.
    #[track_caller]
    pub fn success(self) -> Self {
        assert_eq!(self.code, 0, "failed: {self:#?}");
        self
    }

    /// Panics unless the exit status is another than 0.
    #[track_caller]
    pub fn failure(self) -> Self {
        assert_ne!(self.code, 0, "should have failed: {self:#?}");
        self
    }

    /// The standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        match serde_json::from_str(&self.stdout) {
            Ok(value) => value,
            Err(error) => panic!("{error} in {self:#?}"),
        }
    }

    /// Panics unless it failed with this CNI error code; returns the error object.
    #[track_caller]
    pub fn error(&self, code: u64) -> Value {
        assert_ne!(self.code, 0, "should have failed with code {code}: {self:#?}");
        let object = self.json();
        assert_eq!(object["code"], code, "another error: {self:#?}");
        object
    }
}

/// Runs a command line in the calling thread's namespaces.
#[track_caller]
pub(crate) fn execute(command: &[&str]) -> Output {
    let (program, arguments) = command.split_first().expect("a command");
    let mut spec = ChildSpec::new(find(program));
    spec.arguments = arguments.iter().map(Into::into).collect();
    spec.deadline = Some(PATIENCE);
    execute_spec(&spec, &command.join(" "))
}

/// Runs a program as it is described; `shown` names it in messages.
#[track_caller]
pub(crate) fn execute_spec(spec: &ChildSpec<'_>, shown: &str) -> Output {
    let outcome = run(spec).unwrap_or_else(|error| panic!("{shown}: {error}"));
    Output::new(shown.to_owned(), &outcome)
}

/// The path of a program, looked up as a shell does.
#[track_caller]
pub(crate) fn find(program: &str) -> std::path::PathBuf {
    if program.contains('/') {
        return program.into();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"].map(std::path::PathBuf::from);
    std::env::split_paths(&path)
        .chain(more)
        .map(|directory| directory.join(program))
        .find(|candidate| candidate.is_file())
        .unwrap_or_else(|| {
            panic!(
                "{program} is not installed; apt-get install iproute2 nftables procps util-linux"
            )
        })
}
