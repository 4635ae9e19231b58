//! `dhcp`: what servers send, what plugin and daemon say, what outlives both.

use podwire_dhcp::frame::from_server;
use podwire_dhcp::message::Message;
use podwire_dhcp::protocol::{self, Call, Reply};
use podwire_dhcp::record::Record;
use podwire_dhcp::terms::Terms;
use podwire_plugins::ipam::Dhcp;

use crate::rehearsal::{VERBS, call, variables};
use crate::scratch::Scratch;

/// A frame, or the message alone: first as an offer, then as the answer to a
/// renewal of it.
pub(crate) fn packets(data: &[u8]) {
    let message = from_server(data).map_or(data, |(_, message)| message);
    let Ok(message) = Message::decode(message) else { return };
    if let Ok(terms) = Terms::read(&message, None) {
        let _ = (terms.network(), terms.is_same_for_container(&terms));
        let _ = Terms::read(&message, Some(&terms));
    }
    let written = message.encode();
    assert!(Message::decode(&written).is_ok(), "{message:?}");
}

/// A document on the socket, with and without its length; a record of a lease.
pub(crate) fn documents(data: &[u8]) {
    let document = match protocol::length(data) {
        Ok(Some(length)) => data.get(4..4 + length).unwrap_or(data),
        _ => data,
    };
    if let Ok(asked) = serde_json::from_slice::<Call>(document) {
        assert!(protocol::encode(&asked).is_ok());
        if let Call::Look(key) = &asked {
            let _ = (key.mark(), key.compatible_client(), key.short_client());
        }
    }
    let _ = serde_json::from_slice::<Reply>(document);
    if let Ok(record) = serde_json::from_slice::<Record>(document) {
        let _ = record.key.mark();
    }
}

/// The plugin's `ipam` object; there is no daemon to ask.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Some(open) = text.trim().strip_suffix('}') else { return };
    if text.contains("\\u") {
        return;
    }
    let scratch = Scratch::new("dhcp");
    let comma = if open.trim_end().ends_with('{') { "" } else { "," };
    let place = scratch.path().display();
    let stdin = format!(
        r#"{{"cniVersion":"1.1.0","name":"n","type":"macvlan","cni.dev/valid-attachments":[],
           "ipam":{open}{comma}"dataDir":"{place}","daemonSocketPath":"{place}/none"}}}}"#
    );
    for verb in VERBS {
        call(&Dhcp, &[], variables(verb), stdin.as_bytes());
    }
}
