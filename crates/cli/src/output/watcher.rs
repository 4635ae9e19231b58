//! Watches the runtime: what plugins write to standard error and what the
//! runtime had to put up with is always shown; with `-v` every call as well.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use anstyle::AnsiColor;
use podwire_runtime::exec::Failure;
use podwire_runtime::{CallInfo, Notice, Observer};

use super::{harmless, warn};

/// Watches the runtime for a person.
#[derive(Debug)]
pub(crate) struct Watcher {
    verbose: bool,
    /// Lines of the call that runs on a thread; they come before its end.
    lines: Mutex<HashMap<ThreadId, Vec<String>>>,
}

impl Watcher {
    /// A watcher that shows every call if `verbose`.
    pub(crate) fn new(verbose: bool) -> Self {
        Self { verbose, lines: Mutex::default() }
    }

    fn take_lines(&self) -> Vec<String> {
        let mut lines = self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        lines.remove(&thread::current().id()).unwrap_or_default()
    }
}

impl Observer for Watcher {
    fn on_call_end(&self, call: &CallInfo<'_>, duration: Duration, outcome: Result<(), &Failure>) {
        let lines = self.take_lines();
        let mut stderr = anstream::stderr().lock();
        // The error that will be shown holds the lines of a call that failed.
        if outcome.is_ok() || self.verbose {
            for line in lines {
                let _ = writeln!(stderr, "{}: {}", call.plugin, harmless(&line));
            }
        }
        if self.verbose {
            let _ = writeln!(stderr, "{}", describe(call, duration, outcome));
        }
    }

    fn on_stderr(&self, _call: &CallInfo<'_>, line: &str) {
        let mut lines = self.lines.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        lines.entry(thread::current().id()).or_default().push(line.to_owned());
    }

    fn on_notice(&self, notice: &Notice) {
        warn(&in_words(notice));
    }
}

/// One line about a call.
fn describe(call: &CallInfo<'_>, duration: Duration, outcome: Result<(), &Failure>) -> String {
    let milliseconds = duration.as_secs_f64() * 1000.0;
    let about = match call.attachment {
        Some(attachment) => attachment.to_string(),
        None => call.network.to_string(),
    };
    let line = format!("{} {} {about} {milliseconds:.1} ms", call.operation, call.plugin);
    match outcome {
        Ok(()) => {
            let style = AnsiColor::Green.on_default();
            format!("{line} {style}ok{style:#}")
        }
        Err(failure) => {
            let style = AnsiColor::Red.on_default();
            format!("{line} {style}failed{style:#}: {}", harmless(&failure.to_string()))
        }
    }
}

fn in_words(notice: &Notice) -> String {
    match notice {
        Notice::SetAside { from, to, reason } => format!(
            "{} can't be read ({reason}); it is set aside as {}",
            from.display(),
            to.display()
        ),
        Notice::NoPreviousResult { attachment, reason } => format!(
            "{attachment}: the recorded result can't be used ({reason}); the plugins get none"
        ),
        Notice::RecordedConfigurationUnusable { attachment, reason } => format!(
            "{attachment}: the recorded configuration can't be used ({reason}); the network's \
             present one is used"
        ),
        Notice::RollingBack { attachment } => {
            format!("{attachment}: removing what was made of it")
        }
        Notice::ReplacingDead { attachment } => {
            format!("{attachment}: deleting an earlier attachment whose namespace is gone")
        }
    }
}

#[cfg(test)]
mod tests {
    use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName, PluginType};
    use podwire_spec::operation::Operation;

    use super::*;

    #[test]
    fn a_call_is_one_line_with_its_time() {
        let network = NetworkName::parse("podnet").unwrap();
        let plugin = PluginType::parse("bridge").unwrap();
        let key = AttachmentKey {
            network: network.clone(),
            container_id: ContainerId::parse("c1").unwrap(),
            ifname: IfName::parse("eth0").unwrap(),
        };
        let call = CallInfo {
            network: &network,
            plugin: &plugin,
            index: 0,
            operation: Operation::Add,
            attachment: Some(&key),
        };
        let shown = |outcome| {
            let line = describe(&call, Duration::from_micros(1234), outcome);
            anstream::adapter::strip_str(&line).to_string()
        };
        assert_eq!(shown(Ok(())), format!("ADD bridge {key} 1.2 ms ok"));
        let failure = Failure::Cancelled;
        assert!(
            shown(Err(&failure))
                .ends_with("1.2 ms failed: cancelled, ended with its process group")
        );
    }
}
