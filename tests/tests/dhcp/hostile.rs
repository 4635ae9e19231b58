//! A machine on the segment that answers nonsense, and a lot of it.

use std::net::Ipv4Addr;

use podwire_testkit::Netns;
use podwire_tests::dhcp::wire::{ACK, FIXED, NAK, OFFER, Request, frame};
use podwire_tests::dhcp::{
    Event, Lab, Random, Responder, Server, Settings, Side, Software, Wiring, address_in, address_of,
};
use podwire_tests::segment::run;

const ATTACKER: ([u8; 6], Ipv4Addr) = ([2, 0, 0, 0, 6, 6], Ipv4Addr::new(10, 9, 0, 66));
/// What it would like the client to have.
const TRAP: Ipv4Addr = Ipv4Addr::new(10, 9, 0, 166);

/// A machine on the bridge beside the real server.
fn attacker(lab: &Lab) -> Netns {
    let netns = lab.world.netns("attacker");
    lab.host("ip link add at0 type veth peer name eth0 netns attacker");
    lab.host("ip link set at0 master br0 up");
    run(&netns, "ip link set eth0 up");
    netns
}

/// An answer that no client may take, for one reason at least.
fn nonsense(random: &mut Random, request: &Request) -> Vec<u8> {
    let server = ATTACKER.1.octets();
    let mask = [255, 255, 255, 0];
    let lease = 60_u32.to_be_bytes();
    let usual: [(u8, &[u8]); 3] = [(54, &server), (1, &mask), (51, &lease)];
    let kind = [OFFER, ACK, NAK][usize::try_from(random.below(3)).unwrap()];
    let mut message = request.answer(kind, TRAP, &usual);
    match random.below(13) {
        0 => message[4] ^= 1,             // Another transaction,
        1 => message[33] ^= 1,            // another client,
        2 => message[0] = 1,              // no answer but a request,
        3 => message[236] ^= 0x55,        // not DHCP,
        4 => message[239] = 0,            // nor that,
        5 => message.truncate(FIXED + 1), // cut in the options,
        6 => message.truncate(usize::try_from(random.below(240)).unwrap()), // or before them.
        7 => message[FIXED + 2] = 200,    // No known message,
        8 => message = request.answer(OFFER, Ipv4Addr::BROADCAST, &usual), // no address,
        9 => message = request.answer(OFFER, Ipv4Addr::LOCALHOST, &usual),
        10 => message = request.answer(OFFER, Ipv4Addr::UNSPECIFIED, &usual),
        11 => message = request.answer(OFFER, TRAP, &usual[1..]), // nobody's,
        _ => message = random.bytes(1400),                        // noise.
    }
    // And long options behind it all, the last one longer than the packet.
    if random.below(4) == 0 && message.len() > FIXED + 1 {
        message.pop();
        let wide = random.bytes(255);
        for code in [6, 121, 15, 119, 43] {
            message.extend([code, 255]);
            message.extend(&wide);
        }
        message.extend([121, 255, 33, 1]);
        // With that it is malformed; what stands before it may not count either.
        message[4] ^= 0x80;
    }
    let mut packet = frame(ATTACKER, (request.mac, TRAP), &message);
    match random.below(8) {
        0 => packet[14] = 0x4f, // A header longer than it is,
        1 => packet[16] = 0xff, // a packet longer than it is,
        2 => packet[38] = 0xff, // a datagram longer than it is,
        3 => packet.truncate(14 + usize::try_from(random.below(40)).unwrap()),
        _ => {}
    }
    packet
}

#[test]
fn nonsense_is_ignored_and_the_true_server_heard() {
    let seed = Random::seed("PODWIRE_DHCP_SEED");
    println!("PODWIRE_DHCP_SEED={seed}");
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut random = Random::new(seed);
    let attacker = Responder::start(&attacker(&lab), move |request| {
        (0..200).map(|_| nonsense(&mut random, request)).collect()
    });
    let daemon = lab.daemon(Side::Ours, &["-timeout", "1s"]);
    let config = lab.config();
    let addresses = ["c1", "c2", "c3"].map(|id| {
        let container = lab.container(id);
        let address = address_in(&lab.add(&container, &config));
        assert!(server.settings.has(address), "seed {seed}: {address}");
        assert_eq!(address_of(&container), address, "seed {seed}");
        address
    });
    for address in addresses {
        let given = server.acknowledged(0, address);
        server.acknowledged(given, address);
    }
    assert!(attacker.seen() > 0, "the attacker heard nothing");
    assert_eq!(server.count(0, Event::Refused), 0);
    assert!(!daemon.log().text().contains("panic"), "{}", daemon.log().text());
}

/// Only the server that a client chose may end its lease; and one that offers
/// what can't be used is asked again, not taken.
#[test]
fn a_stranger_s_refusal_does_not_end_a_lease() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let attacker = Responder::start(&attacker(&lab), |request| {
        let answer = request.answer(NAK, Ipv4Addr::UNSPECIFIED, &[(54, &ATTACKER.1.octets())]);
        vec![frame(ATTACKER, (request.mac, Ipv4Addr::BROADCAST), &answer); 5]
    });
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let address = address_in(&lab.add(&container, &lab.config()));
    let given = server.acknowledged(0, address);
    server.acknowledged(given, address);
    assert_eq!(address_of(&container), address);
    assert_eq!(server.count(0, Event::Searched), 1, "{}", server.log().text());
    assert!(attacker.seen() > 0, "the attacker heard nothing");
}
