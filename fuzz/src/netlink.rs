//! Messages of the kernel: of those that a program in another namespace may
//! have filled, such as aliases and userdata, the kernel checks little.

use podwire_netlink::attribute::Attributes;
use podwire_netlink::conntrack::Connection;
use podwire_netlink::nft;
use podwire_netlink::reply::Replies;
use podwire_netlink::route::bridge::decode_vlans;
use podwire_netlink::route::neighbour::Neighbour;
use podwire_netlink::route::tc::{Class, Filter, Qdisc};
use podwire_netlink::route::{Address, Link, Route, Rule};

/// A datagram, taken apart.
pub(crate) fn replies(data: &[u8]) {
    let mut count = 0;
    for reply in Replies::new(data) {
        count += 1;
        if let Ok(reply) = reply {
            let _ = reply.verdict().map(|verdict| verdict.map(Result::err));
        }
    }
    assert!(count <= data.len() / 16 + 1, "{count} messages");
    assert!(Attributes::new(data).count() <= data.len() / 4 + 1);
}

/// One message of rtnetlink.
pub(crate) fn route(data: &[u8]) {
    if let Ok(link) = Link::decode(data) {
        let _ = (link.is_up(), link.is_veth(), link.device().to_string());
    }
    let _ = Address::decode(data);
    let _ = Route::decode(data);
    let _ = Rule::decode(data);
    let _ = Neighbour::decode(data);
    let _ = decode_vlans(data);
}

/// One message of traffic control.
pub(crate) fn tc(data: &[u8]) {
    let _ = Qdisc::decode(data);
    let _ = Class::decode(data);
    let _ = Filter::decode(data);
}

/// One message of nftables, of whatever family.
pub(crate) fn nft(data: &[u8]) {
    nft::read_everything(data);
}

/// The kind of an operation, where the kernel says that it stumbled, and the message.
pub(crate) fn refusal(data: &[u8]) {
    let Some(([kind, offset @ ..], message)) = data.split_first_chunk::<5>() else { return };
    let told = nft::explain(*kind, u32::from_be_bytes(*offset), message);
    assert!(told.is_none_or(|text| text.len() <= 100 + 4 * message.len()));
}

/// One message of connection tracking.
pub(crate) fn conntrack(data: &[u8]) {
    if let Ok(Some(connection)) = Connection::decode(data) {
        let _ = (connection.original.to_string(), connection.reply.to_string());
    }
}
