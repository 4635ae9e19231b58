//! What names one attachment: network, namespace, container and interface.

use std::path::PathBuf;

use clap::Args;
use podwire_spec::args::CniArgs;
use podwire_spec::id::{ContainerId, IfName, NetworkName};
use podwire_spec::request::CapabilityArguments;

const ADD_EXAMPLES: &str = "\
Examples:
  ip netns add blue
  podwire add podnet /run/netns/blue
  podwire add podnet /run/netns/blue --ifname eth1 --container-id web
  podwire add podnet /run/netns/blue \\
      --cap-args '{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"}]}'

Without --container-id the id is derived from the namespace's path, as cnitool
does it; links in the path are followed first. If a plugin fails, or on Ctrl-C,
what was made is removed again.";

const DEL_EXAMPLES: &str = "\
Examples:
  podwire del podnet /run/netns/blue
  podwire del podnet --container-id web --ifname eth1

The plugins get what was recorded by add: configuration, arguments and result.
So the namespace may be gone already, and CNI_ARGS need not be repeated. What is
not attached is deleted too, in case another runtime left something.";

const CHECK_EXAMPLES: &str = "\
Examples:
  podwire check podnet /run/netns/blue
  podwire check podnet --container-id web || echo \"not as it was\"

Ends with 3 when a plugin found a difference, with 1 when it could not be asked.";

/// What names one attachment, and what its plugins are told.
#[derive(Clone, Debug, Args)]
pub(crate) struct AttachmentArguments {
    /// Name of the network
    #[arg(value_name = "NETWORK", value_parser = NetworkName::parse)]
    pub(crate) network: NetworkName,
    /// Path of the network namespace
    #[arg(value_name = "NETNS", required_unless_present = "container_id")]
    pub(crate) netns: Option<PathBuf>,
    /// Id of the container [default: derived from NETNS]
    #[arg(long, value_name = "ID", value_parser = ContainerId::parse)]
    pub(crate) container_id: Option<ContainerId>,
    /// Name of the interface in the container [default: CNI_IFNAME, or eth0]
    #[arg(long, short, value_name = "NAME", value_parser = IfName::parse)]
    pub(crate) ifname: Option<IfName>,
    /// Arguments for the plugins: KEY=VALUE;KEY=VALUE [default: CNI_ARGS]
    #[arg(long, value_name = "ARGS", value_parser = CniArgs::parse)]
    pub(crate) args: Option<CniArgs>,
    /// Capability arguments, a JSON object [default: CAP_ARGS]
    #[arg(long, value_name = "JSON", value_parser = CapabilityArguments::parse)]
    pub(crate) cap_args: Option<CapabilityArguments>,
}

/// `podwire add`.
#[derive(Clone, Debug, Args)]
#[command(after_help = ADD_EXAMPLES)]
pub(crate) struct AddArguments {
    /// The attachment.
    #[command(flatten)]
    pub(crate) attachment: AttachmentArguments,
    /// If it is recorded already and its namespace is gone, delete it first
    #[arg(long)]
    pub(crate) replace: bool,
}

/// `podwire del`.
#[derive(Clone, Debug, Args)]
#[command(after_help = DEL_EXAMPLES)]
pub(crate) struct DelArguments {
    /// The attachment.
    #[command(flatten)]
    pub(crate) attachment: AttachmentArguments,
    /// Use configuration and arguments as given now, not as recorded
    #[arg(long)]
    pub(crate) as_given: bool,
}

/// `podwire check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(crate) struct CheckArguments {
    /// The attachment.
    #[command(flatten)]
    pub(crate) attachment: AttachmentArguments,
    /// Use configuration and arguments as given now, not as recorded
    #[arg(long)]
    pub(crate) as_given: bool,
}
