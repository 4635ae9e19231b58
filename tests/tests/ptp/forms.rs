//! Addresses that the reference can't serve: alone, without a gateway, with one
//! outside their subnet, several behind one, none at all.

use std::net::IpAddr;
use std::time::Duration;

use podwire_testkit::probe::ping;
use podwire_tests::lab::{Lab, addresses, ip, link, links, with};
use podwire_tests::wait_until;
use serde_json::{Value, json};

use crate::{fixed, pods};

const PATIENCE: Duration = Duration::from_secs(5);

/// Attaches two containers and sends packets between them, and to the host.
#[track_caller]
fn all_reach_each_other(configs: [&Value; 2], containers: &[[&str; 2]], host: &[&str]) {
    let lab = Lab::new("ptp");
    for address in ["192.0.2.1/24", "2001:db8::1/64"] {
        lab.ip(&format!("addr add {address} dev lo"));
    }
    let netns = ["c1", "c2"].map(|name| lab.container(name));
    let results = [0, 1].map(|index| lab.add(&netns[index], configs[index]));
    for [one, two] in containers {
        for (from, to) in [(&netns[0], two), (&netns[1], one), (lab.world.host(), one)] {
            let to: IpAddr = to.parse().unwrap();
            ping(from, to, PATIENCE)
                .unwrap_or_else(|error| panic!("{} to {to}: {error}", from.name()));
        }
        for to in host {
            let to: IpAddr = to.parse().unwrap();
            ping(&netns[0], to, PATIENCE).unwrap_or_else(|error| panic!("to {to}: {error}"));
        }
    }
    for index in [0, 1] {
        lab.check(&netns[index], configs[index], &results[index]).success();
        lab.del(&netns[index], configs[index], &results[index]);
    }
    assert!(links(lab.world.host()).is_empty());
}

/// containernetworking/plugins#150: /32 and /128 with a gateway of another net.
#[test]
fn an_address_without_a_subnet_is_served() {
    let config = |number: u8| {
        fixed(&[
            json!({"address": format!("10.3.0.{number}/32"), "gateway": "169.254.1.1"}),
            json!({"address": format!("fd03::{number}/128"), "gateway": "fe80::9"}),
        ])
    };
    all_reach_each_other(
        [&config(2), &config(3)],
        &[["10.3.0.2", "10.3.0.3"], ["fd03::2", "fd03::3"]],
        &["192.0.2.1", "2001:db8::1"],
    );
}

#[test]
fn an_address_without_a_gateway_is_served() {
    for length in [(24, 64), (32, 128)] {
        let config = |number: u8| {
            fixed(&[
                json!({"address": format!("10.3.0.{number}/{}", length.0)}),
                json!({"address": format!("fd03::{number}/{}", length.1)}),
            ])
        };
        all_reach_each_other(
            [&config(2), &config(3)],
            &[["10.3.0.2", "10.3.0.3"], ["fd03::2", "fd03::3"]],
            &["192.0.2.1", "2001:db8::1"],
        );
    }
}

#[test]
fn several_addresses_may_share_their_gateway() {
    let config = |number: u8| {
        fixed(&[
            json!({"address": format!("10.3.0.{number}/24"), "gateway": "10.3.0.1"}),
            json!({"address": format!("10.3.0.1{number}/24"), "gateway": "10.3.0.1"}),
            json!({"address": format!("10.4.0.{number}/24"), "gateway": "10.3.0.1"}),
        ])
    };
    all_reach_each_other(
        [&config(2), &config(3)],
        &[["10.3.0.2", "10.3.0.3"], ["10.3.0.12", "10.3.0.13"], ["10.4.0.2", "10.4.0.3"]],
        &["10.3.0.1", "192.0.2.1"],
    );
}

/// containernetworking/plugins#987: layer 2 alone.
#[test]
fn without_ipam_there_is_only_the_pair() {
    let lab = Lab::new("ptp");
    let netns = lab.container("c1");
    let config = json!({"cniVersion": "1.1.0", "name": "n", "type": "ptp"});
    let result = lab.add(&netns, &config);
    assert_eq!(result.get("ips"), None);
    let host = result["interfaces"][0]["name"].as_str().unwrap().to_owned();
    assert!(addresses(&netns, "eth0").is_empty());
    for (namespace, name) in [(&netns, "eth0"), (lab.world.host(), &host)] {
        wait_until("both ends up", || link(namespace, name).unwrap()["operstate"] == "UP");
    }
    ip(&netns, "addr add 10.3.0.2/24 dev eth0");
    lab.ip(&format!("addr add 10.3.0.1/24 dev {host}"));
    ping(&netns, "10.3.0.1".parse::<IpAddr>().unwrap(), PATIENCE).unwrap();
    lab.check(&netns, &config, &result).success();
    lab.status(&config).success();
    lab.del(&netns, &config, &result);
    lab.del(&netns, &config, &result);
    assert!(links(lab.world.host()).is_empty());
}

#[test]
fn an_address_that_is_its_own_gateway_is_refused() {
    let lab = Lab::new("ptp");
    let netns = lab.container("c1");
    let config = fixed(&[json!({"address": "10.3.0.1/24", "gateway": "10.3.0.1"})]);
    lab.call("ADD", &netns, &config).run().error(7);
    assert!(links(lab.world.host()).is_empty());
}

/// The configuration's DNS replaces IPAM's.
#[test]
fn dns_of_the_configuration_comes_first() {
    let lab = Lab::new("ptp");
    let ipam = json!({"type": "static", "addresses": [{"address": "10.3.0.2/24", "gateway": "10.3.0.1"}],
        "dns": {"nameservers": ["10.3.0.1"]}});
    let config = with(&pods(), &json!({ "ipam": ipam }));
    let [one, two] = ["c1", "c2"].map(|name| lab.container(name));
    assert_eq!(lab.add(&one, &config)["dns"], json!({"nameservers": ["10.3.0.1"]}));
    let mut own = with(&config, &json!({"dns": {"domain": "x.test"}}));
    own["ipam"]["addresses"][0]["address"] = json!("10.3.0.3/24");
    assert_eq!(lab.add(&two, &own)["dns"], json!({"domain": "x.test"}));
}
