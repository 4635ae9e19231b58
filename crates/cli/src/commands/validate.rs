//! `podwire validate`.

use std::path::{Path, PathBuf};

use podwire_runtime::{Finding, Runtime, RuntimeError, Severity};
use podwire_spec::json::Writer;

use crate::arguments::{CommonArguments, Format, ValidateArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{lint, output};

/// Looks over files and directories and prints a line a finding.
pub(super) fn run(common: CommonArguments, arguments: &ValidateArguments) -> Result<Exit, Failure> {
    let (context, interruption) = Context::interruptible(common)?;
    let runtime = &context.runtime;
    let mut findings = Vec::new();
    if arguments.paths.is_empty() {
        findings.extend(look_over(runtime, runtime.configuration_directory())?);
    }
    for path in &arguments.paths {
        findings.extend(look_over(runtime, path)?);
    }
    output::print(&match context.format {
        Format::Text => as_text(&findings),
        Format::Json => as_json(&findings),
    })?;
    let worst = findings.iter().map(|finding| finding.severity).max();
    Ok(interruption.exit().unwrap_or(match worst {
        None => Exit::Done,
        Some(Severity::Warning) => Exit::Failed,
        Some(Severity::Error) => Exit::Usage,
    }))
}

/// What the runtime finds, and what looks wrong in our own plugins' keys.
fn look_over(runtime: &Runtime, path: &Path) -> Result<Vec<Finding>, RuntimeError> {
    let mut findings = runtime.validate(path)?;
    let files: Vec<PathBuf> = if path.is_dir() {
        let directory = podwire_runtime::load::Directory::read(path)?;
        directory.networks.iter().filter_map(|network| network.path().map(Path::to_owned)).collect()
    } else {
        vec![path.to_owned()]
    };
    for file in files {
        findings.extend(lint::check(&file));
        lint::locate(&file, &mut findings);
    }
    findings.sort_by(|one, other| (&one.file, one.position).cmp(&(&other.file, other.position)));
    Ok(findings)
}

fn as_text(findings: &[Finding]) -> String {
    let lines: Vec<_> =
        findings.iter().map(|finding| output::harmless(&finding.to_string())).collect();
    lines.join("\n")
}

fn as_json(findings: &[Finding]) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("findings").begin_array();
    for finding in findings {
        writer.begin_object();
        writer.key("severity").string(finding.severity.as_str());
        if let Some(file) = &finding.file {
            writer.key("file").string(&file.to_string_lossy());
        }
        if let Some(position) = finding.position {
            writer.key("line").integer(i128::try_from(position.line).unwrap_or_default());
            writer.key("column").integer(i128::try_from(position.column).unwrap_or_default());
        }
        if !finding.key.is_empty() {
            writer.key("key").string(&finding.key);
        }
        writer.key("message").string(&finding.message);
        if !finding.hint.is_empty() {
            writer.key("hint").string(&finding.hint);
        }
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    writer.finish()
}
