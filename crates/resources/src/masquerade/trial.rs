//! Whether this host can masquerade at all.

use std::collections::BTreeSet;

use ipnet::{IpNet, Ipv4Net};
use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, NftSocket};
use podwire_spec::error::Error;

use super::layout::{Layout, WrongRules};
use crate::kernel::Kernel;
use crate::nft::Entry;

/// A table that exists within one transaction only.
const TRIAL: &str = "podwire_trial";

/// Whether masquerade could be set up now: nftables is there, with NAT and
/// verdict maps, and we may change it. Leaves no trace.
///
/// # Errors
/// Code 50, with what is missing.
pub fn available(kernel: &mut Kernel) -> Result<(), Error> {
    let socket = kernel.nft().map_err(|error| unavailable(&error))?;
    trial(socket).map_err(|error| unavailable(&crate::kernel::refused(error)))
}

/// Where our table stands, it could be made. Else a transaction makes it
/// under another name and takes it away again.
fn trial(socket: &mut NftSocket) -> Result<(), NetlinkError> {
    if socket.table(Layout::V4.table())?.is_some() {
        return Ok(());
    }
    let layout = Layout::V4.named(TRIAL);
    let subnets = BTreeSet::from([IpNet::V4(Ipv4Net::default())]);
    let mut batch = Batch::new();
    layout.declare(&mut batch, &WrongRules { entry: Entry::Wrong, subnets });
    batch.delete_table(layout.table());
    socket.commit(&batch)
}

fn unavailable(error: &Error) -> Error {
    Error::unavailable(format!("masquerade is not available: {}", error.msg))
        .with_details(error.details.clone())
}
