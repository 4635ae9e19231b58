//! Looking and changing as one step.
//!
//! A commit takes microseconds. But what it deleted is freed after an RCU
//! grace period, and closing any nftables socket waits for that: 10 ms and
//! more, paid at the latest when the process ends. Deleting elements, rules,
//! chains and sets counts, and so does adding a chain that exists (the kernel
//! takes it for an update, and frees the old settings). Adding a table, set,
//! rule or element doesn't. So an ADD that finds the chains as they must be
//! names them in no operation, and takes back nothing.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, NftSocket};

/// Looks, and commits what is to be done about it provided that nothing in
/// nftables changed in between. Nothing to do is nothing done.
///
/// # Errors
/// When the kernel refuses; [`NetlinkError::is_transient`] when something
/// changed, so that [`super::retrying`] looks again.
pub fn transaction(
    socket: &mut NftSocket,
    fill: impl FnOnce(&mut NftSocket, &mut Batch) -> Result<(), NetlinkError>,
) -> Result<(), NetlinkError> {
    let generation = socket.generation()?;
    let mut batch = Batch::new();
    fill(socket, &mut batch)?;
    batch.require_generation(generation);
    socket.commit(&batch)
}
