//! UDP senders that never pause, and whose connections are forgotten for it.

use std::cell::Cell;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use podwire_testkit::probe::UdpEcho;
use podwire_testkit::{Netns, World};
use serde_json::{Value, json};

use crate::lab::{Container, GATEWAY, HOST, Lab, udp};

/// How soon a sender must be served again.
const SOON: Duration = Duration::from_secs(1);

/// One sender with one port: to the kernel, one connection for ever.
struct Sender {
    socket: UdpSocket,
    /// Of the next datagram, so that late answers aren't taken for new ones.
    number: Cell<u32>,
}

impl Sender {
    fn new(from: &Netns, to: &str, port: u16) -> Self {
        let to = SocketAddr::new(to.parse().unwrap(), port);
        let any: SocketAddr = if to.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" }.parse().unwrap();
        let socket = from.run(|| UdpSocket::bind(any)).unwrap();
        socket.connect(to).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        Self { socket, number: Cell::new(0) }
    }

    /// Sends until there is an answer, for so long at most.
    fn is_served_within(&self, patience: Duration) -> bool {
        let until = Instant::now() + patience;
        let first = self.number.get();
        let mut buffer = [0; 64];
        while Instant::now() < until {
            let number = self.number.get();
            self.number.set(number + 1);
            // Refusals are answers to datagrams before.
            let _ = self.socket.send(number.to_string().as_bytes());
            while let Ok(count) = self.socket.recv(&mut buffer) {
                let answer = String::from_utf8_lossy(&buffer[..count]).into_owned();
                let answered: u32 = answer.split(' ').next_back().unwrap().parse().unwrap();
                if answered >= first {
                    return true;
                }
            }
        }
        false
    }
}

fn mappings(host_ip: &str) -> Value {
    json!([{"hostPort": 5353, "containerPort": 53, "protocol": "UDP", "hostIP": host_ip}])
}

#[test]
fn b013_a_sender_that_never_pauses_follows_the_mapping() {
    for (family, with_host_ip) in [(0, false), (1, false), (0, true), (1, true)] {
        let lab = Lab::new();
        let mappings = mappings(if with_host_ip { HOST[family] } else { "" });
        let sender = Sender::new(&lab.outside, HOST[family], 5353);
        // It begins before there is any mapping.
        assert!(!sender.is_served_within(Duration::from_millis(200)));
        let c1 = lab.container("c1", 11);
        let servers = c1.udp(53);
        lab.add(&c1, &mappings).success();
        assert!(sender.is_served_within(SOON), "the first container");
        lab.del(&c1).success();
        drop(servers);
        assert!(!sender.is_served_within(Duration::from_millis(200)), "nobody");
        c1.vanish(&lab);
        let c2 = lab.container("c2", 12);
        let servers = c2.udp(53);
        lab.add(&c2, &mappings).success();
        assert!(sender.is_served_within(SOON), "the second container");
        // It goes, and a process of the host takes the port.
        lab.del(&c2).success();
        drop(servers);
        let address: SocketAddr = (HOST[family].parse::<std::net::IpAddr>().unwrap(), 5353).into();
        let process = UdpEcho::start(lab.world.host(), address);
        assert!(sender.is_served_within(SOON), "a process of the host");
        // And the other way round: the mapping comes while the process serves.
        let c3 = lab.container("c3", 13);
        let _servers = c3.udp(53);
        lab.add(&c3, &mappings).success();
        drop(process);
        assert!(sender.is_served_within(SOON), "the third container");
    }
}

/// The holder died without a DEL: taking its port over frees its senders too.
#[test]
fn b013_senders_of_a_dead_holder_follow_as_well() {
    let lab = Lab::new();
    let sender = Sender::new(&lab.outside, HOST[0], 5353);
    let c1 = lab.container("c1", 11);
    let servers = c1.udp(53);
    lab.add(&c1, &udp(5353, 53)).success();
    assert!(sender.is_served_within(SOON));
    drop(servers);
    c1.vanish(&lab);
    let c2 = lab.container("c2", 12);
    let _servers = c2.udp(53);
    lab.add(&c2, &udp(5353, 53)).success();
    assert!(sender.is_served_within(SOON));
}

fn track(world: &World, protocol: &str, destination: &str, port: u16) {
    let port = port.to_string();
    let mut command = vec!["conntrack", "-I", "-p", protocol, "-s", "192.0.2.9", "-d", destination];
    command.extend(["--sport", "1234", "--dport", &port, "--timeout", "600"]);
    if protocol == "tcp" {
        command.extend(["--state", "ESTABLISHED"]);
    }
    world.exec(&command);
}

fn tracked(world: &World) -> Vec<String> {
    let listed = world.exec(&["conntrack", "-L", "-o", "id"]).stdout;
    let field = |line: &str, name: &str| {
        let mut fields = line.split_whitespace();
        fields.find_map(|field| field.strip_prefix(name).map(str::to_owned)).unwrap()
    };
    let mut all: Vec<_> = listed
        .lines()
        .filter(|line| line.contains("src=192.0.2.9"))
        .map(|line| {
            let protocol = line.split_whitespace().next().unwrap();
            format!("{protocol} {} {}", field(line, "dst="), field(line, "dport="))
        })
        .collect();
    all.sort();
    all
}

fn track_all(world: &World) {
    for destination in [HOST[0], GATEWAY[0], "203.0.113.7"] {
        for (protocol, port) in [("udp", 53), ("udp", 5353), ("udp", 9999), ("tcp", 5353)] {
            track(world, protocol, destination, port);
        }
    }
}

#[test]
fn b034_only_connections_to_the_mapped_port_of_this_host_are_forgotten() {
    let lab = Lab::new();
    let c1: Container = lab.container("c1", 11);
    // So that the kernel tracks connections at all.
    lab.add(&c1, &udp(1, 1)).success();
    for (host_ip, forgotten) in [("", &[HOST[0], GATEWAY[0]][..]), (GATEWAY[0], &[GATEWAY[0]])] {
        for verb in ["ADD", "DEL"] {
            if verb == "DEL" {
                lab.add(&c1, &mappings(host_ip)).success();
            }
            track_all(&lab.world);
            let before = tracked(&lab.world);
            assert_eq!(before.len(), 12, "{before:?}");
            if verb == "ADD" {
                lab.add(&c1, &mappings(host_ip)).success();
            } else {
                lab.del(&c1).success();
            }
            let gone: Vec<_> = {
                let after = tracked(&lab.world);
                before.into_iter().filter(|one| !after.contains(one)).collect()
            };
            let mut expected: Vec<_> =
                forgotten.iter().map(|address| format!("udp {address} 5353")).collect();
            expected.sort();
            assert_eq!(gone, expected, "{verb} for {host_ip:?}");
            lab.world.exec(&["conntrack", "-F"]);
            lab.del(&c1).success();
        }
    }
}
