//! CHECK, STATUS, GC, and DEL of what nobody knows.

use podwire_testkit::Netns;
use podwire_tests::dhcp::{
    Event, Lab, Server, Settings, Side, Software, Wiring, address_in, address_of,
};
use podwire_tests::lab::{with, with_previous};
use serde_json::{Value, json};

/// What a process has open, and its threads.
fn size(process: u32) -> (usize, usize) {
    let count = |what: &str| std::fs::read_dir(format!("/proc/{process}/{what}")).unwrap().count();
    (count("fd"), count("task"))
}

#[test]
fn b085_checks_cost_the_daemon_and_the_server_nothing() {
    let lab = Lab::new(Wiring::Bridge);
    let lease = std::time::Duration::from_mins(10);
    let settings =
        Settings { lease, renew: lease / 2, rebind: lease * 3 / 4, ..Settings::default() };
    let server = Server::start(&lab.server, Software::Isc, settings);
    let daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let config = lab.config();
    let result = lab.add(&container, &config);
    lab.check(&container, &config, &result);
    let (before, said) = (size(daemon.id()), server.mark());
    // The IPAM plugin itself, as the other one calls it.
    let check = with_previous(&config, &result);
    for _ in 0..500 {
        let plugin = lab.world.plugin("dhcp").command("CHECK").container("c1").netns(&container);
        plugin.ifname("eth0").config(&check).run().success();
    }
    assert_eq!(size(daemon.id()), before);
    assert_eq!(server.log().since(said), Vec::<String>::new());
}

/// The same container asks again, as after a lost answer: the same lease.
#[test]
fn b085_the_same_attachment_gets_the_same_lease() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let config = lab.config();
    let address = address_in(&lab.add(&container, &config));
    let again = ipam(&lab, "ADD", &container, &config).success().json();
    assert_eq!(address_in(&again), address);
    server.wait_for_leases(1);
    assert_eq!(server.count(0, Event::Searched), 1, "{}", server.log().text());
}

#[test]
fn b085_a_del_of_an_unknown_lease_succeeds() {
    let lab = Lab::new(Wiring::Bridge);
    let container = lab.container("c1");
    // Without a daemon, and with one.
    ipam(&lab, "DEL", &container, &lab.config()).success();
    let _daemon = lab.daemon(Side::Ours, &[]);
    ipam(&lab, "DEL", &container, &lab.config()).success();
    lab.call("DEL", &container, &lab.config()).run().success();
}

/// CHECK never gets a lease; it says that there is none.
#[test]
fn b085_a_check_without_a_lease_fails_and_asks_no_server() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let config = lab.config();
    let result = lab.add(&container, &config);
    ipam(&lab, "DEL", &container, &config).success();
    server.released(0, address_in(&result));
    let mark = server.mark();
    let checked = ipam(&lab, "CHECK", &container, &with_previous(&config, &result));
    checked.error(100);
    assert_eq!(server.count(mark, Event::Searched), 0);
    daemon.terminate();
    let checked = ipam(&lab, "CHECK", &container, &with_previous(&config, &result));
    assert!(checked.failure().stdout.contains("dhcp.sock"));
}

/// STATUS speaks for ADD, so both say the same.
#[test]
fn status_is_50_without_the_daemon() {
    let lab = Lab::new(Wiring::Bridge);
    let status = |name: &str| lab.world.plugin(name).command("STATUS").config(lab.config()).run();
    for name in ["dhcp", "bridge"] {
        let error = status(name).error(50);
        assert!(error.to_string().contains("/run/cni/dhcp.sock"), "{error}");
    }
    let container = lab.container("c1");
    let error = lab.call("ADD", &container, &lab.config()).run().failure().json();
    assert!(error.to_string().contains("/run/cni/dhcp.sock"), "{error}");
    let mut daemon = lab.daemon(Side::Ours, &[]);
    for name in ["dhcp", "bridge"] {
        status(name).success();
    }
    daemon.kill();
    status("dhcp").error(50);
}

#[test]
fn gc_gives_back_what_is_not_valid() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config();
    let other = with(&config, &json!({"name": "other"}));
    let containers = ["c1", "c2", "c3"].map(|id| lab.container(id));
    let [kept, gone, foreign] = [(0, &config), (1, &config), (2, &other)]
        .map(|(number, config)| address_in(&lab.add(&containers[number], config)));
    let mark = server.mark();
    let gc = |more: Value| {
        let plugin = lab.world.plugin("dhcp").command("GC");
        plugin.config(with(&config, &more)).run().success();
    };
    // Without the list nothing is known, so nothing goes.
    gc(json!({}));
    gc(json!({"cni.dev/valid-attachments": [{"containerID": "c1", "ifname": "eth0"}]}));
    server.released(mark, gone);
    let renewed = server.acknowledged(mark, kept);
    server.acknowledged(renewed, foreign);
    for address in [kept, foreign] {
        assert_eq!(server.count(mark, Event::Released(address)), 0, "{}", server.log().text());
    }
    assert_eq!(address_of(&containers[0]), kept);
    gc(json!({"cni.dev/valid-attachments": []}));
    server.released(mark, kept);
}

/// The bridge is made over and over; a container without a server gets none, in
/// the time that was given, and nothing is left.
#[test]
fn an_add_without_a_server_fails_in_time() {
    let lab = Lab::new(Wiring::Bridge);
    let _daemon = lab.daemon(Side::Ours, &["-timeout", "1s", "-resendtimeout", "2s"]);
    let container = lab.container("c1");
    let began = std::time::Instant::now();
    let error = lab.call("ADD", &container, &lab.config()).run().failure().json();
    assert!(began.elapsed() < std::time::Duration::from_secs(8), "{error:#}");
    assert!(error.to_string().contains("DHCP"), "{error:#}");
    assert!(podwire_tests::segment::is_empty(&container));
}

#[track_caller]
fn ipam(lab: &Lab, verb: &str, container: &Netns, config: &Value) -> podwire_testkit::Output {
    let plugin = lab.world.plugin("dhcp").command(verb).container(container.name());
    plugin.netns(container).ifname("eth0").config(config).run()
}
