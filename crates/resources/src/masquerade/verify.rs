//! CHECK: what stands in the kernel against what must.

use std::collections::BTreeSet;

use ipnet::IpNet;
use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Element, ElementValue, NftSocket, Verdict};
use podwire_plugin::Difference;
use podwire_spec::Error;

use super::layout::{Layout, WrongRules, source, subnet_chain};
use super::{Masquerade, takeover};
use crate::kernel::refused;
use crate::nft::{Entry, compare_entry, compare_rules, display_name, owner_of};

/// Every way in which the masquerade isn't as ADD makes it.
pub(super) fn differences(
    wanted: &Masquerade,
    socket: &mut NftSocket,
) -> Result<Vec<Difference>, Error> {
    let mut differences = Vec::new();
    for layout in Layout::ALL {
        let mut ours = Vec::new();
        for address in wanted.addresses(layout) {
            let key = source(address.addr());
            match socket.element(layout.sources(), &key).map_err(refused)? {
                Some(found) => {
                    differences.extend(element(wanted, address, &found));
                    ours.push(address);
                }
                None if made_by_go(wanted, socket, address)? => {}
                None => differences.push(Difference::missing(format!(
                    "masquerade of {} (map {})",
                    address.addr(),
                    layout.sources()
                ))),
            }
        }
        if !ours.is_empty() {
            differences.extend(entry(socket, layout).map_err(refused)?);
            let subnets: BTreeSet<_> = ours.iter().map(IpNet::trunc).collect();
            for address in subnets {
                differences.extend(subnet(socket, layout, address).map_err(refused)?);
            }
        }
    }
    Ok(differences)
}

/// Which of the chains that ADD needs must be written.
pub(super) fn wrong_rules(
    socket: &mut NftSocket,
    layout: Layout,
    subnets: &BTreeSet<IpNet>,
) -> Result<WrongRules, NetlinkError> {
    let entry = Entry::find(socket, &layout.entry_chain(), &layout.entry_rules())?;
    let mut wrong = WrongRules { entry, subnets: BTreeSet::new() };
    for address in subnets {
        if subnet(socket, layout, *address)?.is_some() {
            wrong.subnets.insert(*address);
        }
    }
    Ok(wrong)
}

fn entry(socket: &mut NftSocket, layout: Layout) -> Result<Option<Difference>, NetlinkError> {
    let what = "leave multicast and look the source up";
    compare_entry(socket, &layout.entry_chain(), &layout.entry_rules(), what)
}

fn subnet(
    socket: &mut NftSocket,
    layout: Layout,
    subnet: IpNet,
) -> Result<Option<Difference>, NetlinkError> {
    let name = subnet_chain(subnet);
    let what = format!("masquerade all but what is for {subnet}");
    compare_rules(socket, layout.table().chain(&name), &layout.subnet_rules(subnet), &what)
}

fn made_by_go(wanted: &Masquerade, socket: &mut NftSocket, address: IpNet) -> Result<bool, Error> {
    let key = &wanted.key;
    let chain = takeover::chain_name(key.network.as_str(), key.container_id.as_str());
    Ok(takeover::serves(socket, &wanted.owner, &chain, address).map_err(refused)?
        || takeover::xtables_serve(&chain, address)?)
}

/// The owner and the verdict of one element.
fn element(wanted: &Masquerade, address: IpNet, found: &Element) -> Option<Difference> {
    let object = format!("masquerade of {}", address.addr());
    if owner_of(&found.userdata) != Some(wanted.owner) {
        let owner = found.comment().unwrap_or_else(|| "no owner".to_owned());
        return Some(Difference::new(object, display_name(&wanted.key), owner));
    }
    let chain = subnet_chain(address);
    let expected = ElementValue::Verdict(Verdict::goto(chain.clone()));
    if found.value.as_ref() == Some(&expected) {
        return None;
    }
    let verdict = match &found.value {
        Some(ElementValue::Verdict(verdict)) => format!("{verdict:?}"),
        _ => "no verdict".to_owned(),
    };
    Some(Difference::new(object, format!("goto {chain}"), verdict))
}
