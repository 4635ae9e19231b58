//! Containers that Podman wired with the Go plugins, whose plugins are exchanged for
//! ours while they run.

use podwire_tests::Plugins;
use podwire_tests::lab::reservations;

use crate::engine::{Podman, page, read_page};

#[test]
fn containers_of_go_1_1_1_are_served_and_removed_by_ours() {
    switch(Plugins::Debian);
}

#[test]
fn containers_of_go_1_9_1_are_served_and_removed_by_ours() {
    switch(Plugins::Sid);
}

fn switch(former: Plugins) {
    let podman = Podman::new(former);
    let (outside, host) = (podman.node.outside(), podman.node.world.host());
    podman.network("one", &["--subnet", "10.5.0.0/24"]);
    podman.network("two", &["--subnet", "10.6.0.0/24", "--subnet", "fd06::/64", "--ipv6"]);
    // What the Go plugins make once and keep is there after the first container.
    podman.serve("first", &["--network", "one", "--network", "two", "-p", "8079:80"]);
    podman.remove(&["first"]);
    let before = podman.node.world.detailed_snapshot();

    podman.serve("web", &["--network", "one", "-p", "8080:80"]);
    podman.serve("pair", &["--network", "one", "--network", "two", "-p", "8081:80"]);
    podman.serve("moved", &["--network", "two", "-p", "8082:80"]);
    let places = ["192.0.2.1:8080", "192.0.2.1:8081", "192.0.2.1:8082"];
    for address in places {
        read_page(&outside.netns, address);
    }
    podman.install(Plugins::Ours);
    for address in places {
        read_page(&outside.netns, address);
    }
    // On and off by ours what was on by theirs, and new ones beside.
    podman.run(&["network", "connect", "one", "moved"]);
    podman.run(&["network", "disconnect", "two", "moved"]);
    podman.run(&["network", "disconnect", "one", "pair"]);
    podman.serve("new", &["--network", "two", "-p", "8083:80"]);
    for address in places {
        read_page(&outside.netns, address);
    }
    read_page(&outside.netns, "192.0.2.1:8083");
    read_page(host, "[fd06::1]:8083");
    let error = podman.try_serve("thief", &["--network", "one", "-p", "8080:80"]).failure();
    assert!(error.stderr.contains("8080"), "{error:#?}");
    podman.run(&["rm", "thief"]);

    podman.remove(&["web"]);
    assert_eq!(page(&outside.netns, places[0]), None);
    podman.serve("heir", &["--network", "one", "-p", "8080:80"]);
    read_page(&outside.netns, places[0]);
    podman.remove(&["heir", "pair", "moved", "new"]);
    assert!(reservations("one").is_empty() && reservations("two").is_empty());
    // Ours also takes the empty chains away that the Go plugins keep.
    podman.assert_nothing_left(&before, &["CNI-FORWARD"]);
}
