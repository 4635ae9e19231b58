//! Errors and warnings on standard error.

use std::fmt::Write as _;
use std::io::Write as _;

use anstyle::{AnsiColor, Style};
use podwire_runtime::RuntimeError;
use podwire_runtime::exec::{Failure as CallFailure, PluginFailure};
use podwire_spec::json::Writer;
use podwire_spec::version::SpecVersion;

use super::harmless;
use crate::arguments::Format;
use crate::exit::Exit;
use crate::failure::Failure;

/// Says on standard error why a command failed; gives the exit code.
pub(crate) fn report(failure: &Failure, format: Format) -> Exit {
    let text = match format {
        Format::Text => as_text(failure),
        Format::Json => as_json(failure),
    };
    // There is nowhere left to say that this failed.
    let _ = anstream::stderr().lock().write_all(text.as_bytes());
    if matches!(failure, Failure::Usage(_)) { Exit::Usage } else { Exit::Failed }
}

/// Says on standard error what did not stop the command.
pub(crate) fn warn(message: &str) {
    let style = AnsiColor::Yellow.on_default().effects(anstyle::Effects::BOLD);
    let message = harmless(message);
    let _ = writeln!(anstream::stderr().lock(), "{style}warning:{style:#} {message}");
}

/// `error: ...`, and the CNI code where the message doesn't hold one.
fn as_text(failure: &Failure) -> String {
    let style: Style = AnsiColor::Red.on_default().effects(anstyle::Effects::BOLD);
    let mut text = String::new();
    let mut line = |message: &str, code: Option<u32>| {
        let code = code.map(|code| format!(" (code {code})")).unwrap_or_default();
        // Writing to a String can't fail.
        let lines: Vec<_> = message.lines().map(harmless).collect();
        let _ = writeln!(text, "{style}error:{style:#} {}{code}", lines.join("\n"));
    };
    match failure {
        Failure::Several(errors) => {
            for error in errors {
                line(&error.to_string(), code_to_add(error));
            }
        }
        Failure::Runtime(error) => line(&error.to_string(), code_to_add(error)),
        Failure::System { .. } | Failure::Usage(_) => {
            line(&failure.to_cni_error().to_string(), None);
        }
    }
    text
}

/// The code, unless the message shows the plugin's own.
fn code_to_add(error: &RuntimeError) -> Option<u32> {
    let reported = plugin_failure(error)
        .is_some_and(|failure| matches!(failure.failure, CallFailure::Reported { .. }));
    (!reported).then(|| error.code().number())
}

/// A CNI error object, with the plugin at fault where there is one.
fn as_json(failure: &Failure) -> String {
    let error = failure.to_cni_error();
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("cniVersion").string(SpecVersion::LATEST.as_str());
    writer.key("code").integer(error.code.number());
    writer.key("msg").string(&error.msg);
    if !error.details.is_empty() {
        writer.key("details").string(&error.details);
    }
    let first = match failure {
        Failure::Runtime(error) => Some(error),
        Failure::Several(errors) => errors.first(),
        Failure::System { .. } | Failure::Usage(_) => None,
    };
    if let Some(call) = first.and_then(plugin_failure) {
        writer.key("network").string(call.network.as_str());
        writer.key("plugin").string(call.plugin.as_str());
        writer.key("operation").string(call.operation.as_str());
        if let CallFailure::Reported { error, .. } = &call.failure {
            writer.key("pluginError").raw(&podwire_spec::json::compact(&error.to_json(None)));
        }
        if !call.stderr_tail.is_empty() {
            writer.key("stderr").string(&call.stderr_tail);
        }
    }
    writer.end_object();
    writer.finish() + "\n"
}

/// The plugin call at the bottom of an error.
pub(crate) fn plugin_failure(error: &RuntimeError) -> Option<&PluginFailure> {
    match error {
        RuntimeError::Plugin(failure) => Some(failure),
        RuntimeError::AddFailed { cause, .. } | RuntimeError::StaleNotRemoved { cause, .. } => {
            plugin_failure(cause)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use podwire_runtime::exec::Exit as ChildExit;
    use podwire_spec::error::{Error, ErrorCode};
    use podwire_spec::id::{NetworkName, PluginType};
    use podwire_spec::operation::Operation;

    use super::*;

    fn plain(failure: &Failure) -> String {
        anstream::adapter::strip_str(&as_text(failure)).to_string()
    }

    fn of_plugin() -> Failure {
        RuntimeError::Plugin(Box::new(PluginFailure {
            network: NetworkName::parse("podnet").unwrap(),
            plugin: PluginType::parse("bridge").unwrap(),
            index: 0,
            operation: Operation::Add,
            failure: CallFailure::Reported {
                error: Error::new(ErrorCode::Plugin(100), "no link").with_details("eth7 is gone"),
                exit: ChildExit::Code(1),
            },
            stderr_tail: "looked twice".into(),
        }))
        .into()
    }

    #[test]
    fn text_names_plugin_code_and_details_once() {
        assert_eq!(
            plain(&of_plugin()),
            "error: plugin type=\"bridge\" (number 1 of network \"podnet\") failed (add): no \
             link; eth7 is gone (code 100, exit status 1); stderr: \"looked twice\"\n"
        );
        let own = Failure::from(Error::environment("missing").with_details("set it"));
        assert_eq!(plain(&own), "error: missing; set it (code 4)\n");
    }

    #[test]
    fn json_is_a_cni_error_object() {
        let text = as_json(&of_plugin());
        let object: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(object["code"], 100);
        assert_eq!(object["plugin"], "bridge");
        assert_eq!(object["operation"], "ADD");
        assert_eq!(object["pluginError"]["details"], "eth7 is gone");
        assert_eq!(object["stderr"], "looked twice");
        assert!(Error::parse(&text).is_some());
    }
}
