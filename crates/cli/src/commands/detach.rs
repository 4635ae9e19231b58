//! `podwire del`.

use podwire_runtime::{NetworkRef, Source};
use podwire_spec::json::Writer;

use crate::arguments::{CommonArguments, DelArguments, Format};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Detaches. Says nothing when all went well, as cnitool does.
pub(super) fn run(common: CommonArguments, arguments: &DelArguments) -> Result<Exit, Failure> {
    let context = Context::new(common);
    let name = &arguments.attachment.network;
    let attachment = context.attachment(&arguments.attachment)?;
    let network = context.network_or_record(name, &attachment)?;
    let network = network.as_ref().map_or(NetworkRef::Named(name), NetworkRef::Loaded);
    let source = if arguments.as_given { Source::Given } else { Source::Recorded };
    let deleted = context.runtime.del(network, &attachment, source)?;
    if context.format == Format::Json {
        let mut writer = Writer::pretty();
        writer.begin_object();
        writer.key("network").string(name.as_str());
        writer.key("containerId").string(attachment.container_id.as_str());
        writer.key("ifName").string(attachment.ifname.as_str());
        writer.key("wasRecorded").boolean(deleted.was_recorded);
        writer.end_object();
        output::print(&writer.finish())?;
    }
    Ok(Exit::Done)
}
