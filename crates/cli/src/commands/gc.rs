//! `podwire gc`.

use std::fmt::Write as _;

use podwire_runtime::{GcMode, GcReport, Network, Stale, ValidSet};
use podwire_spec::json::Writer;

use crate::arguments::{CommonArguments, Container, Format, GcArguments, Keep, What};
use crate::container_id;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Collects, or says what it would collect.
pub(super) fn run(common: CommonArguments, arguments: &GcArguments) -> Result<Exit, Failure> {
    let context = Context::new(common);
    let network = context.runtime.network(arguments.network.as_str())?;
    let mode = if arguments.dry_run { GcMode::DryRun } else { GcMode::Collect };
    let report = match arguments.what() {
        What::These(keep) => context.runtime.gc(&network, &named(keep)?, mode),
        What::Live => context.runtime.gc_dead(&network, mode),
        What::Nothing => context.runtime.gc(&network, &ValidSet::none(), mode),
    }?;
    output::print(&match context.format {
        Format::Text => as_text(&network, &report, mode),
        Format::Json => as_json(&network, &report, mode),
    })?;
    if report.is_clean() { Ok(Exit::Done) } else { Err(Failure::Several(report.failures)) }
}

/// The attachments that were named. A namespace stands for every id that it
/// may be known by: to keep too much is the safe side (B086).
fn named(keep: &[Keep]) -> Result<ValidSet, Failure> {
    let mut valid = Vec::new();
    for Keep { container, ifname } in keep {
        let ids = match container {
            Container::Id(id) => vec![id.clone()],
            Container::Netns(path) => container_id::candidates(path)?,
        };
        valid.extend(ids.into_iter().map(|id| (id, ifname.clone())));
    }
    Ok(ValidSet::of(valid))
}

fn as_text(network: &Network, report: &GcReport, mode: GcMode) -> String {
    let name = network.name();
    if report.disabled {
        return format!("{name}: nothing done, the configuration says disableGC");
    }
    let mut text = String::new();
    for stale in &report.stale {
        let done = match (mode, stale.removed) {
            (GcMode::DryRun, _) => "would be removed",
            (GcMode::Collect, true) => "removed",
            (GcMode::Collect, false) => "NOT removed",
        };
        // Writing to a String can't fail.
        let _ = writeln!(text, "{} ({}): {done}", stale.attachment, stale.state);
    }
    let told: Vec<_> = report.plugins.iter().map(ToString::to_string).collect();
    let _ = match (mode, told.is_empty()) {
        (_, true) => writeln!(
            text,
            "{name}: version {} has no GC (1.1.0 and newer do); what no record tells of stays",
            network.list().version
        ),
        (GcMode::DryRun, false) => {
            writeln!(text, "{name}: would be told to collect: {}", told.join(", "))
        }
        (GcMode::Collect, false) => writeln!(text, "{name}: told to collect: {}", told.join(", ")),
    };
    text
}

fn as_json(network: &Network, report: &GcReport, mode: GcMode) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("network").string(network.name().as_str());
    writer.key("dryRun").boolean(mode == GcMode::DryRun);
    writer.key("disabled").boolean(report.disabled);
    writer.key("kept").begin_array();
    for (container_id, ifname) in &report.kept {
        writer.begin_object();
        writer.key("containerId").string(container_id.as_str());
        writer.key("ifName").string(ifname.as_str());
        writer.end_object();
    }
    writer.end_array();
    writer.key("stale").begin_array();
    for Stale { attachment, state, removed } in &report.stale {
        writer.begin_object();
        writer.key("containerId").string(attachment.container_id.as_str());
        writer.key("ifName").string(attachment.ifname.as_str());
        writer.key("state").string(state.as_str());
        writer.key("removed").boolean(*removed);
        writer.end_object();
    }
    writer.end_array();
    let told: Vec<_> = report.plugins.iter().map(ToString::to_string).collect();
    writer.strings("plugins", &told);
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    writer.strings("failures", &failures);
    writer.end_object();
    writer.finish()
}
