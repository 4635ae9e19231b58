//! `podwire gc`: what to keep must be said, in exactly one way.

use std::path::PathBuf;

use clap::Args;
use podwire_spec::error::Error;
use podwire_spec::id::{ContainerId, IfName, NetworkName};

const EXAMPLES: &str = "\
Examples:
  podwire gc podnet --keep-live --dry-run
  podwire gc podnet --keep web:eth0 --keep db:eth0
  podwire gc podnet --keep /run/netns/blue:eth1
  podwire gc podnet --all

What is not kept is deleted with the configuration recorded for it; then every
plugin is told which attachments are valid, and frees what it holds for others.
--keep-live keeps what has its namespace, and what can't be told. Take care where
other runtimes attach to the same network and record it elsewhere: name theirs
with --keep ID:IFNAME, for --keep-live and --all don't know of them. A path that
leads to nothing recorded is refused, and then nothing is freed.";

/// `podwire gc`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("what").required(true).multiple(false))]
pub(crate) struct GcArguments {
    /// Name of the network
    #[arg(value_name = "NETWORK", value_parser = NetworkName::parse)]
    pub(crate) network: NetworkName,
    /// Keep this attachment, free all others; may be given several times.
    /// A namespace's path may stand in place of the id
    #[arg(long, value_name = "ID:IFNAME", group = "what", value_parser = parse_keep)]
    keep: Vec<Keep>,
    /// Keep the attachments whose namespace is there
    #[arg(long, group = "what")]
    keep_live: bool,
    /// Keep nothing: free all of the network
    #[arg(long, group = "what")]
    all: bool,
    /// Only say what would be removed
    #[arg(long, short = 'n')]
    pub(crate) dry_run: bool,
}

/// What to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What<'a> {
    /// These.
    These(&'a [Keep]),
    /// What lives.
    Live,
    /// Nothing.
    Nothing,
}

/// One attachment to keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    /// Its container.
    pub(crate) container: Container,
    /// Its interface.
    pub(crate) ifname: IfName,
}

/// A container by its id, or by its namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Container {
    /// By its id.
    Id(ContainerId),
    /// By the path of its namespace, from which its id is derived.
    Netns(PathBuf),
}

impl GcArguments {
    /// What to keep.
    pub(crate) fn what(&self) -> What<'_> {
        if self.all {
            What::Nothing
        } else if self.keep_live {
            What::Live
        } else {
            What::These(&self.keep)
        }
    }
}

/// Reads `ID:IFNAME` or `PATH[:IFNAME]`; an id can't hold a slash.
fn parse_keep(text: &str) -> Result<Keep, Error> {
    let (container, ifname) = match text.rsplit_once(':') {
        Some((container, ifname)) => (container, ifname),
        None if text.contains('/') => (text, "eth0"),
        None => {
            return Err(Error::environment(format!("{text:?} names no interface"))
                .with_details("write ID:IFNAME, as web:eth0"));
        }
    };
    let container = if container.contains('/') {
        Container::Netns(container.into())
    } else {
        Container::Id(ContainerId::parse(container)?)
    };
    Ok(Keep { container, ifname: IfName::parse(ifname)? })
}
