//! CHECK: what stands in the kernel against what must.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{ElementValue, NftSocket};
use podwire_plugin::Difference;

use super::{Port, SpoofCheck, layout, takeover};
use crate::nft::{Entry, compare_entry, compare_rules, display_name, owner_of};

/// Every way in which the check isn't as ADD makes it for this port.
pub(super) fn differences(
    wanted: &SpoofCheck,
    socket: &mut NftSocket,
    port: &Port,
) -> Result<Vec<Difference>, NetlinkError> {
    let key = &wanted.key;
    let object = format!("spoof check of {}", port.interface);
    let guarded = socket.element(layout::GUARDED, &layout::guarded(&port.interface))?;
    let Some(guarded) = guarded else {
        let go = takeover::chain_name(key.container_id.as_str(), key.ifname.as_str());
        if takeover::guards(socket, &go, port)? {
            return Ok(Vec::new());
        }
        return Ok(vec![Difference::missing(format!("{object} (map {})", layout::GUARDED))]);
    };
    let mut differences = Vec::new();
    if owner_of(&guarded.userdata) != Some(wanted.owner) {
        let owner = guarded.comment().unwrap_or_else(|| "no owner".to_owned());
        differences.push(Difference::new(object.clone(), display_name(key), owner));
    }
    if guarded.value != Some(ElementValue::Verdict(layout::guard())) {
        let expected = format!("goto {}", layout::CHECK.name);
        differences.push(Difference::new(object.clone(), expected, "another verdict"));
    }
    let allowed = layout::allowed(&port.interface, port.mac);
    if socket.element(layout::ALLOWED, &allowed)?.is_none() {
        let expected = format!("frames from {} pass", port.mac);
        differences.push(Difference::new(object, expected, "they are dropped"));
    }
    differences.extend(rules(socket)?);
    Ok(differences)
}

/// What an ADD finds of the chains that all attachments share.
pub(super) fn chains(socket: &mut NftSocket) -> Result<layout::Found, NetlinkError> {
    let entry = Entry::find(socket, &layout::entry_chain(), &layout::entry_rules())?;
    Ok(layout::Found { entry, has_check: check(socket)?.is_none() })
}

/// Every way in which the rules that all attachments share are wrong.
fn rules(socket: &mut NftSocket) -> Result<Vec<Difference>, NetlinkError> {
    let (entry, rules) = (layout::entry_chain(), layout::entry_rules());
    let entry = compare_entry(socket, &entry, &rules, "look the port up")?;
    Ok(entry.into_iter().chain(check(socket)?).collect())
}

fn check(socket: &mut NftSocket) -> Result<Option<Difference>, NetlinkError> {
    let what = "drop what isn't from an allowed address";
    compare_rules(socket, layout::CHECK, &layout::check_rules(), what)
}
