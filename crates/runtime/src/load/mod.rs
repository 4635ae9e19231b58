//! Loading networks from a configuration directory.
//!
//! Two orders exist in the field. **By name** the runtime follows libcni: all
//! `.conflist` files, sorted by name, come before all `.conf` and `.json`
//! files, and the first with the wanted name wins ([`Directory::take`]). **The
//! first network** of a directory, which containerd and others run as the
//! default, follows go-cni: all files sorted together
//! ([`Directory::first_networks`]).
//!
//! Unlike either, a file that can't be used hides no other (B023): it is kept
//! as a [`Problem`], and whoever asks for a network that isn't there is told
//! which files it may be in. A file that ends in the middle and was written a
//! moment ago is taken to be in someone's pen (B067): what would be chosen
//! instead of it is not, and the error says to try again.
//!
//! Comments, byte order marks and other liberties are refused, as the other
//! runtimes of a node refuse them.

mod directory;
mod files;
mod network;
mod problem;

pub use directory::Directory;
pub use files::Kind;
pub(crate) use files::read as read_file;
pub use network::Network;
pub use problem::Problem;
