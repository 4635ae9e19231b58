//! `podwire gc`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use podwire_runtime::store::{Listing, Stored};
use podwire_runtime::{GcMode, GcReport, Network, Stale, StaleOutcome, ValidSet};
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, IfName, NetworkName};
use podwire_spec::json::Writer;
use podwire_sys::netns::NetNs;

use crate::arguments::{CommonArguments, Container, Format, GcArguments, Keep, What};
use crate::container_id;
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;
use crate::paths;

/// Collects, or says what it would collect.
pub(super) fn run(common: CommonArguments, arguments: &GcArguments) -> Result<Exit, Failure> {
    let context = Context::new(common);
    let network = context.runtime.network(arguments.network.as_str())?;
    let mode = if arguments.dry_run { GcMode::DryRun } else { GcMode::Collect };
    let report = match arguments.what() {
        What::These(keep) => {
            let listing = context.runtime.store().list()?;
            context.runtime.gc(&network, &named(keep, network.name(), &listing)?, mode)
        }
        What::Live => context.runtime.gc_dead(&network, mode),
        What::Nothing => context.runtime.gc(&network, &ValidSet::none(), mode),
    }?;
    for warning in &report.warnings {
        output::warn(&warning.to_string());
    }
    output::print(&match context.format {
        Format::Text => as_text(&network, &report, mode),
        Format::Json => as_json(&network, &report, mode),
    })?;
    if report.is_clean() { Ok(Exit::Done) } else { Err(Failure::Several(report.failures)) }
}

/// The attachments that were named. A namespace stands for every record that
/// holds its path, or another path to the same namespace, whatever the id; and
/// for every id that cnitool may have given it: to keep too much is the safe
/// side (B086).
///
/// # Errors
/// If nothing is recorded of a path: it was mistyped, and GC would free what
/// was meant.
fn named(keep: &[Keep], network: &NetworkName, listing: &Listing) -> Result<ValidSet, Failure> {
    let mut valid = Vec::new();
    for Keep { container, ifname } in keep {
        let ids = match container {
            Container::Id(id) => vec![id.clone()],
            Container::Netns(path) => container_id::candidates(path)?,
        };
        let place = match container {
            Container::Id(_) => None,
            Container::Netns(path) => Some(Place::new(path)?),
        };
        let mut is_recorded = false;
        for Stored { record, .. } in &listing.attachments {
            let AttachmentKey { container_id, .. } = &record.key;
            let is_meant = record.key.network == *network
                && record.key.ifname == *ifname
                && (ids.contains(container_id)
                    || place.as_ref().is_some_and(|place| place.is_of(&record.namespace_path())));
            if is_meant {
                is_recorded = true;
                valid.push((container_id.clone(), ifname.clone()));
            }
        }
        // An id may be another runtime's, or about to be recorded; a path that
        // leads to nothing recorded can only be a mistake.
        if let (false, Container::Netns(path)) = (is_recorded, container) {
            return Err(not_recorded(path, ifname, network));
        }
        valid.extend(ids.into_iter().map(|id| (id, ifname.clone())));
    }
    Ok(ValidSet::of(valid))
}

fn not_recorded(path: &Path, ifname: &IfName, network: &NetworkName) -> Failure {
    let container = path.display();
    let error = Error::environment(format!(
        "--keep {container}:{ifname}: no such attachment of network {network} is recorded"
    ));
    Failure::Usage(error.with_details(format!(
        "nothing was freed; see what is recorded with: podwire list {network}; what another \
         runtime recorded needs its --cache-dir"
    )))
}

/// A namespace that was named by a path.
struct Place {
    path: PathBuf,
    namespace: Option<NetNs>,
}

impl Place {
    fn new(path: &Path) -> Result<Self, Error> {
        let path = paths::canonical(&container_id::absolute(path)?);
        let namespace = NetNs::open(&path).ok();
        Ok(Self { path, namespace })
    }

    /// Whether a recorded path leads here too.
    fn is_of(&self, recorded: &str) -> bool {
        if recorded.is_empty() {
            return false;
        }
        if paths::canonical(Path::new(recorded)) == self.path {
            return true;
        }
        let (Some(own), Ok(theirs)) = (&self.namespace, NetNs::open(recorded)) else {
            return false;
        };
        own.is_same(&theirs).unwrap_or(false)
    }
}

fn as_text(network: &Network, report: &GcReport, mode: GcMode) -> String {
    let name = network.name();
    if report.disabled {
        return format!("{name}: nothing done, the configuration says disableGC");
    }
    let mut text = String::new();
    for stale in &report.stale {
        // Writing to a String can't fail.
        let _ =
            writeln!(text, "{} ({}): {}", stale.attachment, stale.state, stale.outcome.as_str());
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
    for Stale { attachment, state, outcome } in &report.stale {
        writer.begin_object();
        writer.key("containerId").string(attachment.container_id.as_str());
        writer.key("ifName").string(attachment.ifname.as_str());
        writer.key("state").string(state.as_str());
        writer.key("removed").boolean(*outcome == StaleOutcome::Removed);
        if *outcome == StaleOutcome::Busy {
            writer.key("busy").boolean(true);
        }
        writer.end_object();
    }
    writer.end_array();
    let told: Vec<_> = report.plugins.iter().map(ToString::to_string).collect();
    writer.strings("plugins", &told);
    let failures: Vec<_> = report.failures.iter().map(ToString::to_string).collect();
    writer.strings("failures", &failures);
    let warnings: Vec<_> = report.warnings.iter().map(ToString::to_string).collect();
    writer.strings("warnings", &warnings);
    writer.end_object();
    writer.finish()
}
