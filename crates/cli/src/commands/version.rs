//! `podwire version`.

use podwire_runtime::{Network, PluginVersion};
use podwire_spec::json::Writer;

use crate::arguments::{CommonArguments, Format, VersionArguments};
use crate::context::Context;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{self, Table};

/// Asks every plugin of a network for its versions and shows them.
pub(super) fn run(common: CommonArguments, arguments: &VersionArguments) -> Result<Exit, Failure> {
    let (context, interruption) = Context::interruptible(common)?;
    let network = context.runtime.network(arguments.network.as_str())?;
    let versions = context.runtime.versions(&network);
    output::print(&match context.format {
        Format::Text => as_text(&network, &versions),
        Format::Json => as_json(&network, &versions),
    })?;
    let all_fit = versions.iter().all(|version| fits(&network, version));
    let exit = if all_fit { Exit::Done } else { Exit::Failed };
    Ok(interruption.exit().unwrap_or(exit))
}

fn fits(network: &Network, version: &PluginVersion) -> bool {
    version.outcome.as_ref().is_ok_and(|info| info.supports(network.list().version))
}

fn as_text(network: &Network, versions: &[PluginVersion]) -> String {
    let wanted = network.list().version;
    let mut table = Table::new(["PLUGIN", &format!("SPEAKS {wanted}"), "VERSIONS"]);
    for version in versions {
        let name = version.plugin.to_string();
        let name = if version.is_ipam { format!("{name} (ipam)") } else { name };
        let speaks = if fits(network, version) { "yes" } else { "NO" };
        let supported = match &version.outcome {
            Ok(info) => info.supported.join(" "),
            Err(error) => error.to_string(),
        };
        table.row([name, speaks.to_owned(), supported]);
    }
    table.render()
}

fn as_json(network: &Network, versions: &[PluginVersion]) -> String {
    let mut writer = Writer::pretty();
    writer.begin_object();
    writer.key("network").string(network.name().as_str());
    writer.key("cniVersion").string(network.list().version.as_str());
    writer.key("plugins").begin_array();
    for version in versions {
        writer.begin_object();
        writer.key("type").string(version.plugin.as_str());
        writer.key("ipam").boolean(version.is_ipam);
        writer.key("fits").boolean(fits(network, version));
        match &version.outcome {
            Ok(info) => writer.strings("supportedVersions", &info.supported),
            Err(error) => writer.key("error").string(&error.to_string()),
        }
        writer.end_object();
    }
    writer.end_array();
    writer.end_object();
    writer.finish()
}
