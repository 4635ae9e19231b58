//! What servers do to living leases: they restart, forget, and change their mind.

use std::time::Duration;

use podwire_tests::dhcp::{
    AddressChange, Event, Lab, Server, Settings, Side, Software, Wiring, address_in, address_of,
    wait_for_address, with_every_server,
};
use podwire_tests::lab::{addresses, routes};
use podwire_tests::wait_until;

#[test]
fn a_restarted_server_goes_on_with_the_lease() {
    with_every_server(|software| {
        let lab = Lab::new(Wiring::Bridge);
        let mut server = Server::start(&lab.server, software, Settings::default());
        let _daemon = lab.daemon(Side::Ours, &[]);
        let container = lab.container("c1");
        let address = address_in(&lab.add(&container, &lab.config()));
        let given = server.acknowledged(0, address);
        server.restart();
        let mark = server.mark();
        server.acknowledged(mark, address);
        assert_eq!(address_of(&container), address);
        assert_eq!(server.count(given, Event::Searched), 0, "{}", server.log().text());
    });
}

/// The interface gets the address that is given in place of the old one.
///
/// dnsmasq refuses a renewal of an address that it doesn't give any more; the
/// others are silent, so the lease runs out.
fn moves(software: Software, settings: Settings) {
    let lab = Lab::new(Wiring::Bridge);
    let mut server = Server::start(&lab.server, software, Settings::default().brief());
    let daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let config = lab.config();
    let result = lab.add(&container, &config);
    let old = address_in(&result);
    let changes = lab.address_changes(&container);
    // Long enough that a release can be told from an end.
    server.reconfigure(Settings { lease: Duration::from_mins(1), ..settings });
    let mark = server.mark();
    if software == Software::Dnsmasq {
        server.wait(mark, Event::Refused);
    }
    let (_, new) = server.next_acknowledged(mark);
    assert!(server.settings.has(new), "{new} after {old}");
    wait_for_address(&changes, old, AddressChange::Removed);
    wait_for_address(&changes, new, AddressChange::Added);
    assert_eq!(address_of(&container), new, "{}", daemon.log().text());
    let router = server.settings.own;
    let default = format!("default via {router} dev eth0");
    wait_until("the default route", || {
        routes(&container).iter().any(|route| route.starts_with(&default))
    });
    container.exec(&["ping", "-c1", "-W5", &router.to_string()]);

    let end = server.mark();
    lab.del(&container, &config, &result);
    server.released(end, new);
}

#[test]
fn a_server_with_another_range_gives_a_new_address() {
    with_every_server(|software| moves(software, Settings::default().moved()));
}

#[test]
fn a_server_in_another_network_gives_a_new_address_and_router() {
    with_every_server(|software| moves(software, Settings::default().elsewhere()));
}

/// While no server answers, the address stays until the lease's end and no
/// longer; it is had again when the server is back.
#[test]
fn a_lease_that_ran_out_is_taken_off_the_interface() {
    let lab = Lab::new(Wiring::Bridge);
    let mut server = Server::start(&lab.server, Software::Isc, Settings::default().brief());
    let daemon = lab.daemon(Side::Ours, &["-resendmax", "1s"]);
    let container = lab.container("c1");
    let address = address_in(&lab.add(&container, &lab.config()));
    let changes = lab.address_changes(&container);
    server.stop();
    wait_for_address(&changes, address, AddressChange::Removed);
    assert_eq!(addresses(&container, "eth0"), Vec::<String>::new(), "{}", daemon.log().text());
    server.resume();
    let (_, again) = server.next_acknowledged(server.mark());
    assert_eq!(again, address);
    wait_for_address(&changes, address, AddressChange::Added);
    assert_eq!(address_of(&container), address);
}

/// From T2 on any server may go on with a lease (RFC 2131, section 4.4.5), and from
/// then on the lease is its.
#[test]
fn another_server_goes_on_with_the_lease() {
    let lab = Lab::new(Wiring::Bridge);
    let mut first = Server::start(&lab.server, Software::Kea, Settings::default().brief());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let config = lab.config();
    let result = lab.add(&container, &config);
    let address = address_in(&result);
    first.stop();

    let netns = lab.world.netns("second");
    lab.host("ip link add up1 type veth peer name eth0 netns second");
    lab.host("ip link set up1 master br0 up");
    netns.exec(&["ip", "link", "set", "eth0", "up"]);
    let own = std::net::Ipv4Addr::new(10, 9, 0, 2);
    let second = Server::start(&netns, Software::Dnsmasq, Settings { own, ..Settings::default() });
    let taken_over = second.acknowledged(0, address);
    second.acknowledged(taken_over, address);
    assert_eq!(second.count(0, Event::Searched), 0, "{}", second.log().text());
    assert_eq!(address_of(&container), address);
    let end = second.mark();
    lab.del(&container, &config, &result);
    second.released(end, address);
}

/// One more than there are addresses fails in time, and gets one that is given back.
#[test]
fn an_exhausted_pool_fails_in_time() {
    let lab = Lab::new(Wiring::Bridge);
    let last = std::net::Ipv4Addr::new(10, 9, 0, 11);
    let settings = Settings { range: (last, last), ..Settings::default() };
    let server = Server::start(&lab.server, Software::Isc, settings);
    let _daemon = lab.daemon(Side::Ours, &["-timeout", "1s", "-resendtimeout", "2s"]);
    let [first, second] = ["c1", "c2"].map(|id| lab.container(id));
    let config = lab.config();
    let result = lab.add(&first, &config);
    lab.call("ADD", &second, &config).run().failure();
    assert!(podwire_tests::segment::is_empty(&second));
    let mark = server.mark();
    lab.del(&first, &config, &result);
    server.released(mark, last);
    assert_eq!(address_in(&lab.add(&second, &config)), last);
}
