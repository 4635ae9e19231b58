//! The commands that only look: status, version, list, validate; and
//! completions.

use std::path::PathBuf;

use clap::Args;
use podwire_spec::id::NetworkName;

const STATUS_EXAMPLES: &str = "\
Examples:
  podwire status podnet
  podwire status podnet --output json

Ends with 3 when a plugin says that it can't take a container now. Networks of a
version before 1.1.0 have no STATUS: their plugins are not asked.";

const VERSION_EXAMPLES: &str = "\
Examples:
  podwire version podnet
  podwire version podnet --output json

Ends with 1 when a plugin is missing, does not answer, or does not speak the
version of the network.";

const LIST_EXAMPLES: &str = "\
Examples:
  podwire list
  podwire list --network podnet --output json
  podwire list --networks

STATE is that of the namespace: alive, dead (it is gone: del or gc removes the
rest) or unknown; `adding` for an add that runs or was cut short, and `delete
pending` for one that failed and could not be undone. Files that can't be read
follow the table.";

const VALIDATE_EXAMPLES: &str = "\
Examples:
  podwire validate
  podwire validate ./10-podnet.conflist
  podwire validate --output json examples/

One line a finding: file:line:column: severity: key: what (what to do). The
plugins are asked for their versions; nothing else is run.

Exit codes:
  0  nothing found
  1  warnings only
  2  errors: a network could not be used";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  podwire completions bash > /etc/bash_completion.d/podwire
  podwire completions zsh > \"${fpath[1]}/_podwire\"
  podwire completions fish > ~/.config/fish/completions/podwire.fish";

/// `podwire status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub(crate) struct StatusArguments {
    /// Name of the network
    #[arg(value_name = "NETWORK", value_parser = NetworkName::parse)]
    pub(crate) network: NetworkName,
    /// Not used; taken because cnitool wants it
    #[arg(value_name = "NETNS", hide = true)]
    pub(crate) netns: Option<PathBuf>,
}

/// `podwire version`.
#[derive(Clone, Debug, Args)]
#[command(after_help = VERSION_EXAMPLES)]
pub(crate) struct VersionArguments {
    /// Name of the network
    #[arg(value_name = "NETWORK", value_parser = NetworkName::parse)]
    pub(crate) network: NetworkName,
}

/// `podwire list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = LIST_EXAMPLES)]
pub(crate) struct ListArguments {
    /// Only attachments of this network
    #[arg(long, value_name = "NETWORK", value_parser = NetworkName::parse)]
    pub(crate) network: Option<NetworkName>,
    /// List the configured networks instead, and the files that can't be used
    #[arg(long, conflicts_with = "network")]
    pub(crate) networks: bool,
}

/// `podwire validate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = VALIDATE_EXAMPLES)]
pub(crate) struct ValidateArguments {
    /// Files or directories [default: the directory of network configurations]
    #[arg(value_name = "FILE|DIR")]
    pub(crate) paths: Vec<PathBuf>,
}

/// `podwire completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub(crate) struct CompletionsArguments {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

const MAN_EXAMPLES: &str = "\
Examples:
  podwire man /usr/local/share/man/man1";

/// `podwire man`.
#[derive(Clone, Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub(crate) struct ManArguments {
    /// The folder, which must be there
    #[arg(value_name = "DIR")]
    pub(crate) directory: PathBuf,
}
