//! Giving an address back so that the server hears it, wherever the container's
//! interface is by then.
//!
//! The server knows the lease by the address in the packet and takes it only
//! from there (dnsmasq, and RFC 2131, section 4.4.6, which asks for unicast).
//! So the frame is made by hand: from the client's hardware address and the
//! leased address to where the server's answer came from. It is sent through
//! the interface, or through the host's device on the same segment.

use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};

use podwire_sys::packet::PacketSocket;

use super::interface::{Host, Whereabouts};
use crate::frame::{self, EVERYONE, End, SERVER_PORT};
use crate::message::Message;
use crate::record::Record;

/// Whence a release was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum From {
    /// The container's interface.
    Container,
    /// The host.
    Host,
    /// Nowhere: there is no way to the server.
    Nowhere,
}

/// Sends a release for `address` to `server`.
pub(super) fn release(
    host: &mut Host,
    record: &Record,
    address: Ipv4Addr,
    server: Ipv4Addr,
    message: &Message,
) -> From {
    let from = End { hardware: record.identity.hardware, address };
    let to = End { hardware: record.server_hardware.unwrap_or(EVERYONE), address: server };
    let bytes = message.encode();
    if let Whereabouts::There { netns, .. } = host.find(record) {
        let sent = host.inside(&netns, || {
            PacketSocket::open_sender(record.place.index)?
                .send(&frame::to_server(from, to, None, &bytes))
        });
        match sent.and_then(|sent| sent) {
            Ok(()) => return From::Container,
            Err(error) => log::info!("{}: no release from inside: {error}", record.key),
        }
    }
    if let Some((side, device)) = host.segment(record) {
        let is_own = host.has_address(server);
        // A bridge's own hardware address may have changed with its ports.
        let to = if is_own { End { hardware: EVERYONE, ..to } } else { to };
        let frame = frame::to_server(from, to, side.vlan, &bytes);
        let sent = if device.is_bridge() && (is_own || side.port_vlan.is_some()) {
            host.send_as_port(device.index, side.port_vlan, &frame)
        } else {
            PacketSocket::open_sender(device.index)
                .and_then(|socket| socket.send(&frame))
                .map_err(|error| error.to_string())
        };
        match sent {
            Ok(()) => return From::Host,
            Err(error) => {
                log::info!("{}: no release through {}: {error}", record.key, device.name);
            }
        }
    }
    // As an ordinary packet of the host: servers that don't look at the source
    // address take it.
    let sent = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))
        .and_then(|socket| socket.send_to(&bytes, SocketAddrV4::new(server, SERVER_PORT)));
    match sent {
        Ok(_) => From::Host,
        Err(error) => {
            log::warn!("{}: no way to server {server} to give {address} back: {error}", record.key);
            From::Nowhere
        }
    }
}
