//! Networks as clusters have them: lists from the field whose first plugin is
//! another vendor's. Scripts stand in for those, and do what they are known to do
//! with their requests and to the kernel; the chained plugins are ours.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]
#![allow(unreachable_pub)]

mod cluster;
mod lists;
mod stand_ins;
