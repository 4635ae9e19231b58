//! From ADD to DEL with each server, as the server saw it.

use podwire_testkit::Netns;
use podwire_tests::dhcp::{
    Event, Lab, Server, Settings, Side, Software, Wiring, address_in, address_of, with_every_server,
};

/// The client identifier of a container's `eth0` in network `lan`, as Go's plugin
/// forms it: a type of 0, then text.
fn client(container: &Netns) -> String {
    let text = format!("{}/lan/eth0", container.name());
    let digits: Vec<_> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("00{}", digits.concat())
}

fn life(software: Software, wiring: Wiring) {
    let lab = Lab::new(wiring);
    let server = Server::start(&lab.server, software, Settings::default());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let config = lab.config();

    let start = server.mark();
    let result = lab.add(&container, &config);
    let address = address_in(&result);
    assert!(server.settings.has(address), "{result:#}");
    assert_eq!(address_of(&container), address);
    assert_eq!(result["ips"][0]["gateway"], "10.9.0.1", "{result:#}");
    assert!(result["ips"][0]["address"].as_str().unwrap().ends_with("/24"), "{result:#}");
    assert_eq!(result["routes"][0]["dst"], "0.0.0.0/0", "{result:#}");
    container.exec(&["ping", "-c1", "-W5", "10.9.0.1"]);
    let given = server.acknowledged(start, address);

    let leases = server.wait_for_leases(1);
    assert_eq!(leases[0].address, address);
    let link = container.ip_json(&["link", "show", "eth0"]);
    assert_eq!(leases[0].mac, link[0]["address"], "{leases:?}");
    // udhcpd doesn't keep it.
    if software != Software::Udhcpd {
        assert_eq!(leases[0].client, client(&container));
    }

    let renewed = server.acknowledged(given, address);
    lab.check(&container, &config, &result);
    assert_eq!(server.count(given, Event::Searched), 0, "{}", server.log().text());
    server.acknowledged(renewed, address);

    let end = server.mark();
    lab.del(&container, &config, &result);
    server.released(end, address);
    server.wait_for_leases(0);
}

#[test]
fn a_lease_on_a_bridge_is_had_kept_and_given_back() {
    with_every_server(|software| life(software, Wiring::Bridge));
}

#[test]
fn a_lease_on_a_macvlan_is_had_kept_and_given_back() {
    with_every_server(|software| life(software, Wiring::Macvlan));
}

/// Renewals go from the leased address to the server alone; only the first
/// exchange is a matter for everyone on the segment (RFC 2131, section 4.4.5).
#[test]
fn renewals_are_unicast() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Isc, Settings::default());
    let packets = lab.packets();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let address = address_in(&lab.add(&container, &lab.config()));
    let given = server.acknowledged(0, address);
    server.acknowledged(given, address);
    let renewal = format!("{address}.68 > 10.9.0.1.67: ");
    let patience = std::time::Duration::from_secs(10);
    packets.log().wait_for(0, "a renewal", patience, |line| line.contains(&renewal));
    let text = packets.log().text();
    let broadcasts = text.matches("> 255.255.255.255.67: ").count();
    assert_eq!(broadcasts, 2, "DISCOVER and REQUEST only:\n{text}");
}

/// With the flag, servers answer by broadcast; without, to the client alone.
#[test]
fn the_broadcast_flag_is_sent_when_asked_for() {
    for (options, flag) in [(&["-broadcast"][..], "[Broadcast]"), (&[][..], "[none]")] {
        let lab = Lab::new(Wiring::Macvlan);
        let _server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
        let packets = lab.packets();
        let _daemon = lab.daemon(Side::Ours, options);
        let container = lab.container("c1");
        lab.add(&container, &lab.config());
        let is_ours = |line: &&String| line.contains("BOOTP/DHCP, Request");
        let lines = packets.log().since(0);
        let requests: Vec<_> = lines.iter().filter(is_ours).collect();
        assert!(requests.len() >= 2, "{}", packets.log().text());
        let wanted = format!("Flags {flag}");
        assert!(requests.iter().all(|line| line.contains(&wanted)), "{requests:#?}");
        if flag == "[Broadcast]" {
            assert!(
                lines.iter().any(|line| line.contains("> 255.255.255.255.68: ")),
                "no answer by broadcast: {lines:#?}"
            );
        }
    }
}
