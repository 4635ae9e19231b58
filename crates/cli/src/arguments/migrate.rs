//! `podwire migrate`.

use std::path::PathBuf;

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  podwire migrate --check
  podwire migrate
  podwire migrate --rollback
  podwire migrate --plugin-dir /usr/lib/cni --except firewall

Exchanges the Go plugins of a node for Podwire's while containers run: each file in
one step, the Go one kept in .podwire/originals of the same directory. What is
attached stays attached, and is checked and deleted by either. Files that are no
plugin of the Go project are left alone; if one of them has the name of a plugin,
nothing is done, unless --except names it.

--rollback brings the Go files back. Those whose work leaves things on the host that
Go doesn't know (port mappings, masquerade, firewall rules, limits) make nothing new
at once, but go on deleting what they made until nothing is left: then this command
ends with 3 and says so; run it again later to finish.

Each can be run again at any time, and does what is left to do.

Exit codes:
  0  done; with --check: it can be done
  1  failed; every name still leads to a plugin that works
  3  with --check: it would be refused; with --rollback: not all is back yet";

/// `podwire migrate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct MigrateArguments {
    /// Only say what is there and what would change
    #[arg(long, conflicts_with = "rollback")]
    pub(crate) check: bool,
    /// Bring the Go plugins back
    #[arg(long)]
    pub(crate) rollback: bool,
    /// The program that holds our plugins [default: podwire-cni beside podwire, or
    /// /usr/lib/podwire/cni/podwire-cni]
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Do nothing but wait to be told to end: for a pod that has done its work
    #[arg(long, conflicts_with_all = ["check", "rollback"], hide = true)]
    pub(crate) stay: bool,
    /// Leave this name as it is; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) except: Vec<String>,
}
