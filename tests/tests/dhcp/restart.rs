//! The daemon ends, in every way, and comes back: no lease is lost.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use podwire_testkit::Netns;
use podwire_tests::dhcp::{
    AddressChange, Event, Lab, Random, Server, Settings, Side, Software, Wiring, address_in,
    address_of, wait_for_address, with_every_server,
};
use serde_json::Value;

/// The lease is renewed by the next daemon, and nobody looks for a server again.
#[test]
fn b085_leases_are_renewed_after_a_kill_and_after_an_orderly_end() {
    with_every_server(|software| {
        let lab = Lab::new(Wiring::Bridge);
        let server = Server::start(&lab.server, software, Settings::default());
        let mut daemon = lab.daemon(Side::Ours, &[]);
        let container = lab.container("c1");
        let config = lab.config();
        let result = lab.add(&container, &config);
        let address = address_in(&result);
        let given = server.acknowledged(0, address);
        daemon.kill();
        daemon.resume();
        let first = server.acknowledged(server.mark(), address);
        assert!(daemon.terminate().success(), "{}", daemon.log().text());
        daemon.resume();
        let second = server.acknowledged(first, address);
        server.acknowledged(second, address);
        assert_eq!(server.count(given, Event::Searched), 0, "{}", server.log().text());
        lab.check(&container, &config, &result);
        let end = server.mark();
        lab.del(&container, &config, &result);
        server.released(end, address);
    });
}

/// A lease that ran out while no daemon was there is not used any longer.
#[test]
fn a_lease_that_ran_out_meanwhile_is_asked_for_again() {
    let lab = Lab::new(Wiring::Bridge);
    let mut server = Server::start(&lab.server, Software::Kea, Settings::default().brief());
    let mut daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let old = address_in(&lab.add(&container, &lab.config()));
    daemon.kill();
    server.reconfigure(server.settings.clone().moved());
    let patience = std::time::Duration::from_secs(30);
    server.log().wait_for(0, "the end of the lease", patience, |line| {
        line.contains("ALLOC_ENGINE_V4_LEASE_RECLAIM ") && line.contains(&format!("{old}"))
    });
    let changes = lab.address_changes(&container);
    let mark = server.mark();
    daemon.resume();
    let (_, new) = server.next_acknowledged(mark);
    wait_for_address(&changes, old, AddressChange::Removed);
    wait_for_address(&changes, new, AddressChange::Added);
    assert_eq!(address_of(&container), new);
}

/// A container that goes while no daemon is there: its lease is given back when
/// one comes, and the other containers' leases are kept.
#[test]
fn b085_a_namespace_that_vanished_meanwhile_is_let_go() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut daemon = lab.daemon(Side::Ours, &[]);
    let [gone, alive] = ["c1", "c2"].map(|id| lab.container(id));
    let config = lab.config();
    let left = address_in(&lab.add(&gone, &config));
    let kept = address_in(&lab.add(&alive, &config));
    assert_ne!(left, kept);
    daemon.kill();
    gone.remove();
    let mark = server.mark();
    daemon.resume();
    server.acknowledged(mark, kept);
    server.released(mark, left);
    assert_eq!(address_of(&alive), kept);
}

/// DEL doesn't need the daemon; the release follows when it is back.
#[test]
fn a_del_without_the_daemon_is_carried_out_later() {
    for wiring in [Wiring::Bridge, Wiring::Macvlan] {
        let lab = Lab::new(wiring);
        let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
        let mut daemon = lab.daemon(Side::Ours, &[]);
        let [first, second] = ["c1", "c2"].map(|id| lab.container(id));
        let config = lab.config();
        let results = [&first, &second].map(|container| lab.add(container, &config));
        let [address, other] = [0, 1].map(|number| address_in(&results[number]));
        daemon.terminate();
        lab.del(&first, &config, &results[0]);
        // As often as a runtime likes.
        lab.del(&first, &config, &results[0]);
        let mark = server.mark();
        assert_eq!(server.count(0, Event::Released(address)), 0);
        daemon.resume();
        server.released(mark, address);
        server.acknowledged(mark, other);
        assert_eq!(server.count(0, Event::Released(address)), 1, "{}", server.log().text());
        assert_eq!(address_of(&second), other);
    }
}

/// Killed at random moments of exchanges and renewals, again and again.
#[test]
fn b085_no_lease_is_lost_and_no_address_doubled_by_kills() {
    let seed = Random::seed("PODWIRE_DHCP_SEED");
    println!("PODWIRE_DHCP_SEED={seed}");
    let mut random = Random::new(seed);
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut daemon = lab.daemon(Side::Ours, &["-resendmax", "1s"]);
    let config = lab.config();
    let mut given: BTreeMap<String, (Netns, Value, Ipv4Addr)> = BTreeMap::new();
    for round in 0..8 {
        let id = format!("c{round}");
        let container = lab.container(&id);
        let mark = server.mark();
        let call = lab.call("ADD", &container, &config);
        let adding = std::thread::spawn(move || call.run());
        // At the so-manieth thing that the server says of this ADD or of renewals.
        let lines = usize::try_from(random.below(40)).unwrap();
        let patience = std::time::Duration::from_secs(20);
        if lines > 0 {
            server.log().wait_for(mark + lines - 1, "traffic", patience, |_| true);
        }
        daemon.kill();
        daemon.resume();
        let output = adding.join().unwrap();
        let result = if output.code == 0 {
            output.json()
        } else {
            // What a runtime does then.
            lab.call("DEL", &container, &config).run().success();
            lab.add(&container, &config)
        };
        let address = address_in(&result);
        given.insert(id, (container, result, address));
    }

    let mark = server.mark();
    let mut addresses: Vec<_> = given.values().map(|(_, _, address)| *address).collect();
    for (container, _, address) in given.values() {
        assert_eq!(address_of(container), *address, "seed {seed}: {}", daemon.log().text());
        server.acknowledged(mark, *address);
    }
    addresses.sort_unstable();
    addresses.dedup();
    assert_eq!(addresses.len(), given.len(), "seed {seed}: an address twice: {given:?}");
    let leases = server.wait_for_leases(given.len());
    for (container, _, address) in given.values() {
        let mac = container.ip_json(&["link", "show", "eth0"])[0]["address"].clone();
        let holder = leases.iter().find(|lease| lease.address == *address);
        assert_eq!(holder.map(|lease| lease.mac.clone().into()), Some(mac), "seed {seed}");
    }

    let end = server.mark();
    for (container, result, address) in given.values() {
        lab.del(container, &config, result);
        server.released(end, *address);
    }
    server.wait_for_leases(0);
}
