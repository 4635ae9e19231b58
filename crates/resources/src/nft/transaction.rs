//! Looking and changing as one step.

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
