//! `podwire status`.

use podwire_runtime::Status;
use podwire_spec::json::Writer;

use super::no_or_failure;
use crate::arguments::{CommonArguments, Format, StatusArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Asks a network whether it is ready, and says so.
pub(super) fn run(common: CommonArguments, arguments: &StatusArguments) -> Result<Exit, Failure> {
    let (context, interruption) = Context::interruptible(common)?;
    let network = context.runtime.network(arguments.network.as_str())?;
    let status = match context.runtime.status(&network) {
        Ok(status) => status,
        Err(error) => {
            let exit = no_or_failure(error, context.format)?;
            return Ok(interruption.exit().unwrap_or(exit));
        }
    };
    let name = network.name();
    output::print(&match (context.format, status) {
        (Format::Text, Status::Ready) => format!("{name}: ready"),
        (Format::Text, Status::NotAsked) => format!(
            "{name}: not asked, version {} has no STATUS (1.1.0 and newer do)",
            network.list().version
        ),
        (Format::Json, status) => {
            let mut writer = Writer::pretty();
            writer.begin_object();
            writer.key("network").string(name.as_str());
            writer.key("status").string(match status {
                Status::Ready => "ready",
                Status::NotAsked => "not asked",
            });
            writer.end_object();
            writer.finish()
        }
    })?;
    Ok(Exit::Done)
}
