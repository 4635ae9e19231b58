//! `podwire add`.

use podwire_runtime::{Attached, Existing, Network, Source};
use podwire_spec::result::VersionedResult;

use crate::arguments::{AddArguments, CommonArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output;

/// Attaches, and prints the result in its own version as cnitool does, in
/// either format: scripts read it.
pub(super) fn run(common: CommonArguments, arguments: &AddArguments) -> Result<Exit, Failure> {
    let (context, interruption) = Context::interruptible(common)?;
    let network = context.runtime.network(arguments.attachment.network.as_str())?;
    let attachment = context.attachment(&arguments.attachment)?;
    let existing = if arguments.replace { Existing::ReplaceDead } else { Existing::Refuse };
    match context.runtime.add(&network, &attachment, existing) {
        Ok(attached) => {
            if let Err(unsaid) = output::print(&result_text(&network, &attached)) {
                // Whoever asked knows of no attachment, and calls it failed.
                context.runtime.del(&network, &attachment, Source::Recorded)?;
                return Err(unsaid);
            }
            Ok(Exit::Done)
        }
        Err(error) => {
            let exit = output::report(&error.into(), context.format);
            Ok(interruption.exit().unwrap_or(exit))
        }
    }
}

/// The result with indent; what the types don't know stays out of it, as with
/// cnitool. One that can't be read is shown as it came.
fn result_text(network: &Network, attached: &Attached) -> String {
    VersionedResult::parse(&attached.raw, network.list().version)
        .map_or_else(|_| attached.raw.clone(), |result| result.to_json())
}
