//! What is asked of servers, told to them, and taken from them.

use std::net::Ipv4Addr;

use podwire_tests::dhcp::{
    Lab, Server, Settings, Side, Software, Wiring, address_in, with_every_server,
};
use podwire_tests::lab::routes;
use serde_json::json;

/// A lab with dnsmasq, which writes down what clients send.
fn lab() -> (Lab, Server) {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    (lab, server)
}

#[test]
fn routes_and_names_from_every_server_are_in_the_result_and_the_kernel() {
    with_every_server(|software| {
        let lab = Lab::new(Wiring::Bridge);
        let settings = Settings {
            routes: vec![
                ("192.0.2.0/24", Ipv4Addr::new(10, 9, 0, 2)),
                ("0.0.0.0/0", Ipv4Addr::new(10, 9, 0, 3)),
            ],
            name_servers: vec![Ipv4Addr::new(10, 9, 0, 53), Ipv4Addr::new(10, 9, 0, 54)],
            domain: Some("lab.example"),
            mtu: Some(1400),
            ..Settings::default()
        };
        let _server = Server::start(&lab.server, software, settings);
        let _daemon = lab.daemon(Side::Ours, &[]);
        let container = lab.container("c1");
        let result = lab.add(&container, &lab.config());
        // The MTU is that of the way to the network, not of every neighbour.
        // With option 121 the router of option 3 doesn't count (RFC 3442).
        assert_eq!(
            result["routes"],
            json!([
                {"dst": "192.0.2.0/24", "gw": "10.9.0.2", "mtu": 1400},
                {"dst": "0.0.0.0/0", "gw": "10.9.0.3", "mtu": 1400},
            ]),
            "{result:#}"
        );
        assert_eq!(result["dns"]["nameservers"], json!(["10.9.0.53", "10.9.0.54"]), "{result:#}");
        assert_eq!(result["dns"]["domain"], "lab.example", "{result:#}");
        let routes = routes(&container);
        for route in ["192.0.2.0/24 via 10.9.0.2 dev eth0", "default via 10.9.0.3 dev eth0"] {
            assert!(routes.iter().any(|found| found.starts_with(route)), "{routes:#?}");
        }
    });
}

#[test]
fn a_metric_is_set_on_every_route() {
    let (lab, _server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let result = lab.add(&container, &lab.config_with(&json!({"priority": 77})));
    assert_eq!(result["routes"][0]["priority"], 77, "{result:#}");
    let routes = routes(&container);
    let default = routes.iter().find(|route| route.starts_with("default ")).unwrap();
    assert!(default.contains("metric 77"), "{routes:#?}");
}

/// The options that the client asked for, as dnsmasq lists them, of the first
/// exchange.
fn requested(server: &Server) -> Vec<u8> {
    let lines = server.log().since(0);
    let mut numbers = Vec::new();
    let start = lines.iter().position(|line| line.contains("DHCPDISCOVER")).unwrap();
    for line in &lines[start..] {
        if line.contains("DHCPREQUEST") {
            break;
        }
        let Some((_, list)) = line.split_once("requested options: ") else { continue };
        numbers.extend(
            list.split(", ").map(|one| one.split(':').next().unwrap().parse::<u8>().unwrap()),
        );
    }
    numbers
}

#[test]
fn options_are_requested_by_name_and_number() {
    let (lab, server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config_with(&json!({
        "request": [{"option": "vendor-class-identifier"}, {"option": "42"}, {"option": "host-name"}],
    }));
    lab.add(&lab.container("c1"), &config);
    let requested = requested(&server);
    for option in [60, 42, 12, 3, 1] {
        assert!(requested.contains(&option), "{option} in {requested:?}");
    }
}

#[test]
fn the_usual_requests_can_be_left_out() {
    let (lab, server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config_with(&json!({
        "request": [{"option": "subnet-mask", "skipDefault": true}],
    }));
    let result = lab.add(&lab.container("c1"), &config);
    assert_eq!(requested(&server), [1]);
    assert_eq!(result["routes"].as_array().map_or(0, Vec::len), 0, "{result:#}");
}

#[test]
fn what_is_provided_reaches_the_server() {
    let (lab, server) = lab();
    let packets = lab.packets();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config_with(&json!({"provide": [
        {"option": "host-name", "fromArg": "K8S_POD_NAME"},
        {"option": "vendor-class-identifier", "value": "pods"},
        {"option": "77", "value": "users"},
    ]}));
    let container = lab.container("c1");
    let call = lab.call("ADD", &container, &config).args("IgnoreUnknown=1;K8S_POD_NAME=web-0");
    let address = address_in(&call.run().success().json());
    let log = server.log().text();
    assert!(log.contains("client provides name: web-0"), "{log}");
    assert!(log.contains("vendor class: pods"), "{log}");
    let patience = std::time::Duration::from_secs(10);
    packets.log().wait_for(0, "option 77", patience, |line| line.contains("(77)"));
    server.acknowledged(0, address);
}

/// One that is given replaces Go's form.
#[test]
fn a_client_identifier_of_one_s_own_is_sent() {
    let (lab, server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config_with(&json!({
        "provide": [{"option": "dhcp-client-identifier", "value": "printer"}],
    }));
    lab.add(&lab.container("c1"), &config);
    assert_eq!(server.wait_for_leases(1)[0].client, "7072696e746572");
}

/// Both fit servers that take no long ones.
#[test]
fn shorter_client_identifiers_are_there_on_request() {
    let (lab, server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    lab.add(&container, &lab.config_with(&json!({"clientId": "mac"})));
    let leases = server.wait_for_leases(1);
    assert_eq!(leases[0].client, format!("01{}", leases[0].mac.replace(':', "")));
    let other = lab.container("c2");
    let call = lab.call("ADD", &other, &lab.config_with(&json!({"clientId": "short"})));
    let address = address_in(&call.container(&"y".repeat(250)).run().success().json());
    let lease =
        server.wait_for_leases(2).into_iter().find(|lease| lease.address == address).unwrap();
    assert_eq!(lease.client.len(), 2 * 34, "{lease:?}");
}

#[test]
fn an_identifier_longer_than_an_option_is_cut_as_go_cuts_it() {
    let (lab, server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let id = "x".repeat(250);
    let container = lab.container("c1");
    let call = lab.call("ADD", &container, &lab.config()).container(&id);
    call.run().success();
    let text: String = format!("{id}/lan/eth0").chars().take(254).collect();
    let digits: Vec<_> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(server.wait_for_leases(1)[0].client, format!("00{}", digits.concat()));
}

#[test]
fn malformed_keys_are_named() {
    let (lab, _server) = lab();
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    for (ipam, named) in [
        (json!({"request": [{"option": "no-such-option"}]}), "no-such-option"),
        (json!({"request": [{"option": "256"}]}), "256"),
        (
            json!({"provide": [{"option": "host-name", "value": "x".repeat(256)}]}),
            "ipam.provide[0]",
        ),
        (json!({"daemonSocketPath": "/run/cni/nobody.sock"}), "/run/cni/nobody.sock"),
    ] {
        let config = lab.config_with(&ipam);
        let error = lab.call("ADD", &container, &config).run().failure().json();
        assert!(error.to_string().contains(named), "{named}: {error:#}");
    }
}
