//! The `podwire` command: attach containers to CNI networks, look at what is
//! attached, and clean up.
//!
//! It reads arguments and environment into types ([`arguments`]), asks the
//! runtime library to do the work ([`commands`]) and shows what came of it
//! ([`output`]). It knows nothing of bridges, addresses or rules: those are
//! the plugins' affair.
//!
//! ```text
//! ip netns add blue
//! podwire add podnet /run/netns/blue
//! podwire check podnet /run/netns/blue
//! podwire del podnet /run/netns/blue
//! ```

mod arguments;
mod commands;
mod container_id;
mod context;
mod environment;
mod exit;
mod failure;
mod lint;
mod output;
mod paths;
mod signals;

use std::process::ExitCode;

use arguments::{Format, Outcome};
use podwire_sys::arena::Arena;
use podwire_sys::process::{BeyondSizeLimit, beyond_size_limit};

/// A command lives for milliseconds, too; one that lists a node needs some 2 kB for
/// each attachment.
#[global_allocator]
static MEMORY: Arena<{ 8 << 20 }> = Arena::new();

fn main() -> ExitCode {
    // A full file is an error like a full disk, not the end in the middle of a change.
    beyond_size_limit(BeyondSizeLimit::IsAnError);
    let cli = match arguments::parse() {
        Outcome::Command(cli) => *cli,
        Outcome::Answer(error) => error.exit(),
        Outcome::Mistake(failure) => return output::report(&failure, Format::Json).into(),
    };
    let format = cli.common.output;
    let outcome = commands::dispatch(cli);
    outcome.unwrap_or_else(|failure| output::report(&failure, format)).into()
}
