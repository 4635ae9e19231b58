//! What the other side sees.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};

use podwire_testkit::Netns;
use podwire_testkit::probe::{ANSWER, TcpEcho, tcp_connect};

use crate::lab::{HOST, Lab, SERVER, add, address, del, ip};

/// Whom a server in `to` sees when `from` connects to it.
#[track_caller]
fn seen(from: &Netns, to: &Netns, at: &str) -> IpAddr {
    let echo = TcpEcho::start(to, SocketAddr::new(address(at), 0));
    tcp_connect(from, echo.address(), ANSWER).unwrap().seen_as.ip()
}

#[test]
fn outside_sees_the_host_and_without_masquerade_the_container() {
    let lab = Lab::new();
    let pod = lab.container("c1", &["10.1.0.2", "fd00:1::2"]);
    assert_eq!(seen(&pod, &lab.server, SERVER[0]), address("10.1.0.2"));
    assert_eq!(seen(&pod, &lab.server, SERVER[1]), address("fd00:1::2"));

    add("c1", &["10.1.0.2/24", "fd00:1::2/64"]);
    assert_eq!(seen(&pod, &lab.server, SERVER[0]), address(HOST[0]));
    assert_eq!(seen(&pod, &lab.server, SERVER[1]), address(HOST[1]));

    del("c1");
    assert_eq!(seen(&pod, &lab.server, SERVER[0]), address("10.1.0.2"));
    assert_eq!(seen(&pod, &lab.server, SERVER[1]), address("fd00:1::2"));
}

#[test]
fn within_the_subnet_the_source_is_kept() {
    let lab = Lab::new();
    let first = lab.container("c1", &["10.1.0.2", "fd00:1::2"]);
    let second = lab.container("c2", &["10.1.0.3", "fd00:1::3"]);
    let elsewhere = lab.container("c3", &["10.2.0.3"]);
    add("c1", &["10.1.0.2/24", "fd00:1::2/64"]);
    add("c2", &["10.1.0.3/24", "fd00:1::3/64"]);
    add("c3", &["10.2.0.3/24"]);
    assert_eq!(seen(&first, &second, "10.1.0.3"), address("10.1.0.2"));
    assert_eq!(seen(&first, &second, "fd00:1::3"), address("fd00:1::2"));
    // Another subnet of ours is outside, as with the Go plugins.
    assert_eq!(seen(&first, &elsewhere, "10.2.0.3"), address("169.254.1.1"));
}

#[test]
fn the_longest_and_the_shortest_prefix_work() {
    let lab = Lab::new();
    let alone = lab.container("c1", &["10.1.0.2"]);
    let neighbour = lab.container("c2", &["10.1.0.3"]);
    add("c1", &["10.1.0.2/32"]);
    assert_eq!(seen(&alone, &neighbour, "10.1.0.3"), address("169.254.1.1"));
    // Everything is within 0.0.0.0/0.
    add("c1", &["10.1.0.2/0"]);
    assert_eq!(seen(&alone, &lab.server, SERVER[0]), address("10.1.0.2"));
    // A prefix that ends within a byte.
    add("c1", &["10.1.0.2/22"]);
    assert_eq!(seen(&alone, &neighbour, "10.1.0.3"), address("10.1.0.2"));
    assert_eq!(seen(&alone, &lab.server, SERVER[0]), address(HOST[0]));
}

#[test]
fn multicast_keeps_its_source() {
    const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
    let lab = Lab::new();
    // The host sends with a container's address: it passes postrouting as what
    // it forwards does, and needs no multicast routing.
    ip(&lab.world, "addr add 10.1.0.9/32 dev uplink");
    add("c1", &["10.1.0.9/24"]);
    let listener = lab.server.run(|| {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        socket.join_multicast_v4(&GROUP, &SERVER[0].parse().unwrap()).unwrap();
        socket.set_read_timeout(Some(ANSWER)).unwrap();
        socket
    });
    let port = listener.local_addr().unwrap().port();
    let heard_from = |target: IpAddr| {
        let sender = UdpSocket::bind((Ipv4Addr::new(10, 1, 0, 9), 0)).unwrap();
        sender.send_to(b"hello", (target, port)).unwrap();
        listener.recv_from(&mut [0; 16]).unwrap().1.ip()
    };
    assert_eq!(heard_from(GROUP.into()), address("10.1.0.9"));
    assert_eq!(heard_from(address(SERVER[0])), address(HOST[0]));
}

#[test]
fn a_connection_lives_on_while_others_come_and_go() {
    let lab = Lab::new();
    let pod = lab.container("c1", &["10.1.0.2"]);
    add("c1", &["10.1.0.2/24"]);
    let echo = TcpEcho::start(&lab.server, SocketAddr::new(address(SERVER[0]), 0));
    let mut connection = tcp_connect(&pod, echo.address(), ANSWER).unwrap();
    for number in 3..40 {
        let other = format!("c{number}");
        add(&other, &[&format!("10.1.0.{number}/24")]);
        connection.exchange(b"still here").unwrap();
        del(&other);
    }
    connection.exchange(b"still here").unwrap();
}
