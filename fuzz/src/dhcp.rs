//! `dhcp`: what servers send, what plugin and daemon say, what outlives both.

use podwire_dhcp::frame::from_server;
use podwire_dhcp::fuzzing;
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

/// What comes over the socket: behind the first byte, which says in pieces of what
/// length, heard by the daemon; and heard by the plugin.
pub(crate) fn greeting(data: &[u8]) {
    let Some((piece, bytes)) = data.split_first() else { return };
    let (count, answer) = fuzzing::client(bytes, usize::from(*piece)).unwrap();
    assert!(count <= 1, "{count} calls of one client");
    assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.0 "), "{answer:?}");
    let greeted = bytes.starts_with(protocol::GREETING.as_bytes());
    assert!(greeted || count == 0 || bytes.starts_with(b"GET /metrics"), "{count} calls");
    let _ = fuzzing::answer(bytes).unwrap();
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
