//! Moving a live node from the Go plugins to Podwire's, and back.
//!
//! A plugin is a file that a runtime executes, so moving a node means to exchange
//! files under the feet of a runtime that may execute any of them at any moment:
//!
//! - each name changes in one step (rename), and always leads to a program that
//!   works; a process that runs goes on with the file that it began with;
//! - what ours take the place of is kept aside, as the very same file, and only if
//!   it says of itself to be what it is taken for;
//! - nothing in the kernel is touched: our plugins know what the Go plugins made
//!   (`podwire_resources`), so what is attached stays attached;
//! - whichever step was the last before a power cut or a kill, the same command
//!   does the rest. The files themselves are the only state.
//!
//! The way back needs more, for the Go plugins don't know all that ours made: a port
//! mapping that nobody removes would lead to the next container that gets the
//! address. So after [`rollback`] everything new is made by the originals at once,
//! while the plugins of which objects are left keep deleting them, until there are
//! none ([`podwire_plugin::aside`]). Rewriting the objects into the originals' form
//! was the other choice; it needs a moment at which no DEL runs, which can't be had
//! beside a runtime that knows nothing of us.
//!
//! It knows files and programs, and where to look for what ours made; it must not
//! know how a plugin works.
//!
//! ```no_run
//! use podwire_migrate::{Source, Wishes, migrate, survey};
//! use std::path::Path;
//!
//! # fn main() -> Result<(), podwire_spec::Error> {
//! let directory = Path::new("/opt/cni/bin");
//! let source = Source::open(Path::new("/usr/lib/podwire/cni/podwire-cni"))?;
//! println!("{} files", survey(directory, &source, &Wishes::default())?.files.len());
//! migrate(directory, &source, &Wishes::default())?;
//! # Ok(())
//! # }
//! ```

mod build_info;
mod exchange;
pub mod fuzzing;
mod place;
mod program;
mod remains;
mod rollback;
mod running;
mod source;
mod survey;
mod uses;

pub use exchange::{Exchanged, migrate};
pub use program::Program;
pub use remains::{Remains, remains};
pub use rollback::{RolledBack, rollback};
pub use source::Source;
pub use survey::{PluginFile, Step, Survey, Wishes, survey};
pub use uses::{Uses, uses};
