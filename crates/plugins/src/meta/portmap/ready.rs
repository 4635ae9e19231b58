//! Whether this kernel could take port mappings now (STATUS).

use podwire_netlink::nft::{Batch, IpVersion, NftSocket};
use podwire_spec::Error;

use super::layout;

/// A chain that nobody has: asking for its deletion undoes the whole
/// transaction before it takes effect.
const NOBODYS: &str = "a chain that is never made";

/// Asks the kernel to do all that the first ADD does, in a transaction whose
/// last operation must fail, so that nothing of it stays.
///
/// # Errors
/// Code 50 with what the kernel refused.
pub(super) fn probe(socket: &mut NftSocket, version: IpVersion) -> Result<(), Error> {
    let mut batch = Batch::new();
    batch.add_table(&layout::table_object(version));
    batch.add_chain(&layout::conditional(version));
    for set in layout::sets(version) {
        batch.add_set(&set);
    }
    let mut chains = layout::chains(version);
    chains.push(layout::masquerade_chain(version, None));
    for filled in &chains {
        batch.add_chain(&filled.chain);
        for rule in &filled.rules {
            batch.add_rule(rule);
        }
    }
    batch.delete_chain(layout::table(version).chain(NOBODYS));
    match socket.commit(&batch) {
        Ok(()) => Ok(()),
        Err(error) if error.is_not_found() && error.object().contains(NOBODYS) => Ok(()),
        Err(error) => Err(Error::unavailable(format!("port mappings can't be made: {error}"))
            .with_details(
                "portmap needs CAP_NET_ADMIN, and nf_tables with nat, fib, masquerade and \
                 conntrack (modules nf_tables, nft_chain_nat, nft_fib_ipv4 or nft_fib_ipv6, \
                 nft_masq, nft_ct)",
            )),
    }
}
