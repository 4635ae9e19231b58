//! `podwire run`.

use std::ffi::OsString;

use clap::Args;
use podwire_spec::args::CniArgs;
use podwire_spec::id::{ContainerId, NetworkName};
use podwire_spec::request::CapabilityArguments;

const EXAMPLES: &str = "\
Examples:
  podwire run podnet -- ip addr
  podwire run podnet storage -- sh
  podwire run podnet --cap-args \\
      '{\"portMappings\":[{\"hostPort\":8080,\"containerPort\":80,\"protocol\":\"tcp\"}]}' \\
      -- python3 -m http.server 80

The interfaces are eth0, eth1 and so on, in the order of the networks; arguments
are for the first one. The command sees its own /sys, and in /etc/resolv.conf the
name servers of the first network that has some. At its end, on a signal or if
something fails, all is removed again. Signals go to the command. What a killed
`podwire run` left is removed by the next one.

Exit codes:
  that of the command; 128 and the number of the signal that ended it
  125  the namespace or a network could not be set up or removed
  126  the command could not be executed
  127  the command was not found";

/// `podwire run`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// Names of the networks
    #[arg(value_name = "NETWORK", required = true, num_args = 1.., value_parser = NetworkName::parse)]
    pub(crate) networks: Vec<NetworkName>,
    /// Id of the container [default: a random one]
    #[arg(long, value_name = "ID", value_parser = ContainerId::parse)]
    pub(crate) container_id: Option<ContainerId>,
    /// Arguments for the first network: KEY=VALUE;KEY=VALUE [default: CNI_ARGS]
    #[arg(long, value_name = "ARGS", value_parser = CniArgs::parse)]
    pub(crate) args: Option<CniArgs>,
    /// Capability arguments for the first network, a JSON object [default: CAP_ARGS]
    #[arg(long, value_name = "JSON", value_parser = CapabilityArguments::parse)]
    pub(crate) cap_args: Option<CapabilityArguments>,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", last = true, required = true, num_args = 1..)]
    pub(crate) command: Vec<OsString>,
}
