//! Operations that meet on purpose, and a witness that sees whether an address is ever
//! held twice.
//!
//! A [`Race`] makes rounds of the same kinds until so many operations are done: many
//! first ADDs on a host without a bridge, ADD against DEL of one attachment, ADDs and
//! DELs against GC, and our runtime beside Go's on one network. The [`Witness`] knows
//! nothing of the code under test: it hears what ADD answered and when DEL began, and
//! asks the kernel all the while which address is in which namespace. After each kind
//! the host must be as it was, less the residue that the design allows.

mod race;
mod rounds;
mod witness;

pub use race::{Outcome, Race};
pub use witness::Witness;
