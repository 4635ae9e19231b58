//! What every command takes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::duration;

/// How results, lists and errors are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people.
    #[default]
    Text,
    /// For programs: one JSON document on standard output; an error is a CNI
    /// error object, the last thing on standard error (warnings may precede it).
    Json,
}

/// What every command takes.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonArguments {
    /// Directory of network configurations [default: /etc/cni/net.d]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    pub(crate) conf_dir: Option<PathBuf>,
    /// Directory of plugins; may be given several times [default: /opt/cni/bin]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    pub(crate) plugin_dir: Vec<PathBuf>,
    /// Where attachments are recorded [default: /var/lib/cni]
    #[arg(long, global = true, value_name = "DIR", help_heading = "Common options")]
    pub(crate) cache_dir: Option<PathBuf>,
    /// How to write results, lists and errors
    #[arg(
        long,
        short,
        global = true,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        help_heading = "Common options"
    )]
    pub(crate) output: Format,
    /// How long the plugins may take in all: 10s, 500ms, 2m [default: 3m]
    #[arg(
        long,
        global = true,
        value_name = "TIME",
        value_parser = duration::parse,
        help_heading = "Common options"
    )]
    pub(crate) timeout: Option<Duration>,
    /// Show each plugin call with its time and outcome
    #[arg(long, short, global = true, help_heading = "Common options")]
    pub(crate) verbose: bool,
}
