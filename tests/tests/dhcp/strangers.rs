//! A plugin of one kind and a daemon of the other: a clear failure at once.

use std::time::{Duration, Instant};

use podwire_testkit::Output;
use podwire_tests::dhcp::{Lab, Server, Settings, Side, Software, Wiring, address_in};

/// ADD and DEL by one side's plugin with the other's daemon.
fn meet(plugins: Side, daemons: Side) -> [Output; 2] {
    let lab = Lab::with_plugins(plugins, Wiring::Macvlan);
    let _server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let _daemon = lab.daemon(daemons, &[]);
    let container = lab.container("c1");
    ["ADD", "DEL"].map(|verb| {
        let began = Instant::now();
        let output = lab.call(verb, &container, &lab.config()).run();
        assert!(began.elapsed() < Duration::from_secs(8), "{verb} took long: {output:#?}");
        output
    })
}

#[test]
fn our_plugin_says_that_go_s_daemon_is_to_be_replaced() {
    let [add, del] = meet(Side::Ours, Side::Go);
    let error = add.failure().json();
    let text = error.to_string();
    assert!(text.contains("start `dhcp daemon` of Podwire"), "{text}");
    // What this plugin has to give back, it gives back when its own daemon is there.
    del.success();
}

#[test]
fn go_s_plugin_fails_at_once_with_our_daemon() {
    let [add, _] = meet(Side::Go, Side::Ours);
    let error = add.failure().json();
    let text = error.to_string();
    assert!(text.contains("odwire"), "{text}");
}

/// The client identifier is Go's, so a server gives the same address to the same
/// container after the switch.
#[test]
fn a_container_keeps_its_address_over_a_switch_from_go() {
    let lab = Lab::with_plugins(Side::Go, Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let config = lab.config();
    let mut daemon = lab.daemon(Side::Go, &["-timeout", "1s"]);
    // Another one first, so that the address isn't just the first of the range.
    lab.add(&lab.container("c0"), &config);
    let container = lab.container("c1");
    let before = address_in(&lab.add(&container, &config));
    daemon.terminate();
    container.remove();
    // Its interface has another MAC address, so only the identifier tells.
    let lab = lab.switched_to(Side::Ours);
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let mark = server.mark();
    let after = address_in(&lab.add(&container, &config));
    assert_eq!(after, before);
    server.acknowledged(mark, after);
}

/// What Go's daemon leased is unknown to ours: DEL succeeds all the same.
#[test]
fn b085_what_go_attached_is_detached() {
    let lab = Lab::with_plugins(Side::Go, Wiring::Bridge);
    let _server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let config = lab.config();
    let mut daemon = lab.daemon(Side::Go, &["-timeout", "1s"]);
    let container = lab.container("c1");
    let result = lab.add(&container, &config);
    daemon.terminate();
    let lab = lab.switched_to(Side::Ours);
    let _daemon = lab.daemon(Side::Ours, &[]);
    lab.del(&container, &config, &result);
    assert!(podwire_tests::segment::is_empty(&container));
}
