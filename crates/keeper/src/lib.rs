//! What a node knows about its attachments: what lives, what leaked.
//!
//! The node service and the diagnoses of the `podwire` command are to be built
//! here, on `podwire-runtime` (what is recorded, what a namespace's path leads
//! to) and `podwire-netlink` (what the kernel has). Nothing is here yet: what
//! the command needs today, [`podwire_runtime::live`], belongs to the runtime.
//!
//! This crate must never free anything on age alone, on one missing file or on
//! one list that lacks an attachment.
