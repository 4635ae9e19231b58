//! The command line: what may be written, and its help. Values are parsed
//! here, once, into the types that the commands work with.
#![allow(clippy::doc_markdown)] // This is the help; a terminal would show the backticks.

mod attachment;
mod common;
mod duration;
mod gc;
mod look;
mod migrate;
mod parse;
mod run;

use clap::{Parser, Subcommand};

pub(crate) use attachment::{AddArguments, AttachmentArguments, CheckArguments, DelArguments};
pub(crate) use common::{CommonArguments, Format};
pub(crate) use gc::{Container, GcArguments, Keep, What};
pub(crate) use look::{
    CompletionsArguments, ListArguments, ManArguments, StatusArguments, ValidateArguments,
    VersionArguments,
};
pub(crate) use migrate::MigrateArguments;
pub(crate) use parse::{Outcome, parse};
pub(crate) use run::RunArguments;

const AFTER_HELP: &str = "\
Environment, as with cnitool; a flag counts more:
  NETCONFPATH   directory of network configurations
  CNI_PATH      directories of plugins, separated by colons
  CNI_IFNAME    interface name
  CNI_ARGS      KEY=VALUE;KEY=VALUE for the plugins
  CAP_ARGS      capability arguments, a JSON object

Exit codes:
  0    done
  1    failed; what failed, and why, is on standard error
  2    called wrongly; nothing was tried
  3    the answer is no: check found a difference, status says not ready
  130  ended by Ctrl-C (128 and the signal's number); a running add is undone
validate and run have codes of their own, see their help.";

/// Attach containers to CNI networks, look at what is attached, clean up.
#[derive(Debug, Parser)]
#[command(
    name = "podwire",
    version,
    after_long_help = AFTER_HELP,
    arg_required_else_help = true,
    disable_help_subcommand = true,
)]
pub(crate) struct Cli {
    /// What every command takes.
    #[command(flatten)]
    pub(crate) common: CommonArguments,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Attach a network namespace to a network and print the result.
    Add(AddArguments),
    /// Detach a network namespace from a network.
    Del(DelArguments),
    /// Check that an attachment is still as it was made.
    Check(CheckArguments),
    /// Ask whether a network can take a container now.
    Status(StatusArguments),
    /// Remove what belongs to no attachment that is to be kept.
    Gc(GcArguments),
    /// Ask each plugin of a network which versions it speaks.
    Version(VersionArguments),
    /// Run a command in a fresh namespace, attached to networks.
    Run(RunArguments),
    /// List attachments, or networks.
    List(ListArguments),
    /// Look for mistakes in network configurations.
    Validate(ValidateArguments),
    /// Exchange the Go plugins of this node for Podwire's, or go back.
    Migrate(MigrateArguments),
    /// Print a completion script for a shell.
    Completions(CompletionsArguments),
    /// Write the manual into a folder, a page for each command.
    #[command(hide = true)]
    Man(ManArguments),
}

#[cfg(test)]
mod tests;
