//! Files that are whole or absent, read with a bound.
//!
//! State of a network must survive a crash at any instruction: new content is
//! written beside its place and appears there in one step (B002, B088).

mod atomic;
mod directory;
mod linked;
mod read;
mod room;
mod temporary;

pub use atomic::{Durability, write_atomic};
pub use directory::{
    create_dir_all, quarantine, refuse_foreign_link, regular_files, walk_regular_files,
};
pub use linked::{Linked, Unnamed, create_linked};
pub use read::{open_plain, read_bounded};
pub use room::room_for_files;
pub use temporary::{is_temporary_name, remove_abandoned_temporaries};
