//! Routes and names on the host that are in the way.

use std::cell::RefCell;

use podwire_netlink::route::RouteSocket;
use podwire_tests::lab::{Lab, is_bookkeeping, links, routes};
use podwire_tests::wait_until;
use serde_json::{Value, json};

use crate::fixed;

fn same_address() -> Value {
    fixed(&[
        json!({"address": "10.5.0.5/24", "gateway": "10.5.0.1"}),
        json!({"address": "fd05::5/64", "gateway": "fd05::1"}),
    ])
}

/// A tap or another device that nobody can be proven to have left.
#[test]
fn b100_a_route_of_a_stranger_is_an_error_that_names_the_device() {
    for route in ["10.5.0.5 dev ghost", "fd05::5 dev ghost"] {
        let lab = Lab::new("ptp");
        lab.ip("tuntap add ghost mode tap");
        lab.ip("link set ghost up");
        lab.ip(&format!("route add {route}"));
        let netns = lab.container("c1");
        let before = lab.world.snapshot();
        let error = lab.call("ADD", &netns, &same_address()).run().error(999);
        let text = error["msg"].as_str().unwrap();
        assert!(text.contains("leads to ghost"), "{text}");
        lab.world.snapshot().since(&before).without(is_bookkeeping).assert_empty();
        assert!(links(&netns).is_empty());
    }
}

/// B100: the address of a container that lives.
#[test]
fn b100_a_route_of_another_attachment_is_an_error_that_names_it() {
    let lab = Lab::new("ptp");
    let [one, two] = ["c1", "c2"].map(|name| lab.container(name));
    let result = lab.add(&one, &same_address());
    let error = lab.call("ADD", &two, &same_address()).run().error(999);
    assert!(error["msg"].as_str().unwrap().contains("podwire:n:c1:eth0"), "{error}");
    lab.check(&one, &same_address(), &result).success();
    lab.del(&one, &same_address(), &result);
    lab.add(&two, &same_address());
}

/// B100: a namespace that is being taken down, or is gone, is in nobody's way:
/// the kernel is slow with it.
#[test]
fn b100_a_dead_containers_route_is_replaced() {
    for _ in 0..10 {
        let lab = Lab::new("ptp");
        let [old, new] = ["c1", "c2"].map(|name| lab.container(name));
        lab.add(&old, &same_address());
        let mut host = RouteSocket::open().unwrap();
        let pair = host.links_of_kind("veth").unwrap().remove(0);
        let namespace = pair.parent_namespace.unwrap();
        old.remove();
        // The unmounted file holds it for some milliseconds.
        let host = RefCell::new(host);
        wait_until("the namespace's end", || {
            !host.borrow_mut().is_namespace_alive(namespace).unwrap()
        });
        let result = lab.add(&new, &same_address());
        let host = result["interfaces"][0]["name"].as_str().unwrap();
        let there = routes(lab.world.host());
        let wanted = format!("10.5.0.5 dev {host} scope host");
        assert!(there.iter().any(|route| route.starts_with(&wanted)), "{there:?}");
        lab.check(&new, &same_address(), &result).success();
    }
}

/// B100: another device has the name that the host's end would get.
#[test]
fn b100_a_taken_name_of_the_host_end_is_avoided() {
    let lab = Lab::new("ptp");
    let netns = lab.container("c1");
    let result = lab.add(&netns, &same_address());
    let name = result["interfaces"][0]["name"].as_str().unwrap().to_owned();
    lab.del(&netns, &same_address(), &result);
    lab.ip(&format!("tuntap add {name} mode tap"));
    let result = lab.add(&netns, &same_address());
    assert_ne!(result["interfaces"][0]["name"], name.as_str());
    lab.check(&netns, &same_address(), &result).success();
    lab.del(&netns, &same_address(), &result);
    assert_eq!(links(lab.world.host()), [name]);
}
