//! The Go plugin and daemon with the same servers and the same witnesses: what
//! the other tests rely on is known to be true of something else than Podwire.

use podwire_tests::dhcp::{
    Lab, Server, Settings, Side, Software, Wiring, address_in, address_of, with_every_server,
};

/// A renewal comes, and the server holds the address of the interface.
fn serves(software: Software, wiring: Wiring) {
    let lab = Lab::with_plugins(Side::Go, wiring);
    let server = Server::start(&lab.server, software, Settings::default());
    let _daemon = lab.daemon(Side::Go, &["-timeout", "1s"]);
    let container = lab.container("c1");
    let mark = server.mark();
    let config = lab.config();
    let result = lab.add(&container, &config);
    let address = address_in(&result);
    assert!(server.settings.has(address), "{result:#}");
    assert_eq!(address_of(&container), address);
    let after_add = server.acknowledged(mark, address);
    server.acknowledged(after_add, address);
    let leases = server.wait_for_leases(1);
    assert_eq!(leases[0].address, address);
    lab.del(&container, &config, &result);
}

#[test]
fn go_is_served_by_every_server() {
    with_every_server(|software| serves(software, Wiring::Bridge));
}
