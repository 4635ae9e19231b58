//! Whether the host's chains could take rules now (STATUS).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use podwire_netlink::nft::{Batch, IpVersion, NftSocket};
use podwire_spec::error::Error;

use super::filter::{push, view_nft};
use super::rule::{HostRule, Match, TABLE, Target, table};
use super::view::{Edit, FORWARD};
use crate::kernel::{Kernel, refused};
use crate::nft::legacy::xtables;

/// A chain that is only made within a transaction that fails.
const TRIAL: &str = "PODWIRE-TRIAL";
/// A chain that nobody has: asking for its deletion undoes the whole
/// transaction before it takes effect.
const NOBODYS: &str = "a chain that is never made";

/// Whether rules could be put into the host's chains. Leaves no trace.
///
/// # Errors
/// Code 50, with what is missing.
pub fn available(kernel: &mut Kernel) -> Result<(), Error> {
    let unavailable = |error: Error| {
        Error::unavailable(format!("the host's firewall can't be changed: {}", error.msg))
            .with_details(error.details)
    };
    if xtables::is_in_use(IpVersion::V4, TABLE).map_err(unavailable)? {
        return xtables::apply(IpVersion::V4, TABLE, &[]).map_err(unavailable);
    }
    let socket = kernel.nft().map_err(unavailable)?;
    trial(socket, IpVersion::V4, Ipv4Addr::LOCALHOST.into()).map_err(unavailable)?;
    // A kernel without IPv6 has no IPv6 containers to serve.
    if std::path::Path::new("/proc/thread-self/net/if_inet6").exists() {
        trial(socket, IpVersion::V6, Ipv6Addr::LOCALHOST.into()).map_err(unavailable)?;
    }
    Ok(())
}

fn trial(socket: &mut NftSocket, version: IpVersion, address: IpAddr) -> Result<(), Error> {
    let view = view_nft(socket, version, &[FORWARD]).map_err(refused)?;
    let matches = vec![Match::Destination(address), Match::Established];
    let rule = HostRule::new(TRIAL, matches, Target::Accept).with_comment("trial");
    let edits =
        [Edit::AddChain(FORWARD.to_owned()), Edit::AddChain(TRIAL.to_owned()), Edit::Append(rule)];
    let mut batch = Batch::new();
    push(&mut batch, &view, &edits);
    batch.delete_chain(table(version).chain(NOBODYS));
    match socket.commit(&batch) {
        Err(error) if !(error.is_not_found() && error.object().contains(NOBODYS)) => {
            Err(super::filter::explain(refused(error)))
        }
        _ => Ok(()),
    }
}
