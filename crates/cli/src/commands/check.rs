//! `podwire check`.

use podwire_runtime::{Checked, NetworkRef, Source};
use podwire_spec::json::Writer;

use super::no_or_failure;
use crate::arguments::{CheckArguments, CommonArguments, Format};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Checks an attachment and says how it is.
pub(super) fn run(common: CommonArguments, arguments: &CheckArguments) -> Result<Exit, Failure> {
    let (context, interruption) = Context::interruptible(common)?;
    let name = &arguments.attachment.network;
    let attachment = context.attachment(&arguments.attachment)?;
    let network = context.network_or_record(name, &attachment)?;
    let network = network.as_ref().map_or(NetworkRef::Named(name), NetworkRef::Loaded);
    let source = if arguments.as_given { Source::Given } else { Source::Recorded };
    let checked = match context.runtime.check(network, &attachment, source) {
        Ok(checked) => checked,
        Err(error) => {
            let exit = no_or_failure(error, context.format)?;
            return Ok(interruption.exit().unwrap_or(exit));
        }
    };
    let word = match checked {
        Checked::Sound => "sound",
        Checked::Disabled => "not checked",
    };
    let key = attachment.key(name);
    output::print(&match (context.format, checked) {
        (Format::Text, Checked::Sound) => format!("{key}: sound"),
        (Format::Text, Checked::Disabled) => {
            format!("{key}: not checked, the configuration says disableCheck")
        }
        (Format::Json, _) => {
            let mut writer = Writer::pretty();
            writer.begin_object();
            writer.key("network").string(name.as_str());
            writer.key("containerId").string(attachment.container_id.as_str());
            writer.key("ifName").string(attachment.ifname.as_str());
            writer.key("state").string(word);
            writer.end_object();
            writer.finish()
        }
    })?;
    Ok(Exit::Done)
}
