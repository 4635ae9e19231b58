//! Clients of the socket that are no plugins, or sick ones.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use podwire_tests::dhcp::{Lab, Random, Server, Settings, Side, Software, Wiring, address_in};

const SOCKET: &str = "/run/cni/dhcp.sock";
const GREETING: &[u8] = b"CONNECT /podwire/dhcp/1 HTTP/1.0\r\n\r\n";

/// Something that no plugin says.
fn noise(random: &mut Random) -> Vec<u8> {
    let length = usize::try_from(random.below(6000)).unwrap();
    let body = random.bytes(length);
    match random.below(6) {
        0 => body,
        1 => [GREETING, &[0xff; 4], &body].concat(),
        2 => [GREETING, &[0, 0, 0, 9], &body].concat(),
        3 => [GREETING, b"\0\0\0\x0e{\"Allocate\":{}"].concat(),
        4 => [b"CONNECT /podwire/dhcp/99 HTTP/1.0\r\n\r\n".as_slice(), &body].concat(),
        _ => vec![b'A'; length],
    }
}

#[test]
fn noise_on_the_socket_is_dropped_and_plugins_are_served() {
    let seed = Random::seed("PODWIRE_DHCP_SEED");
    println!("PODWIRE_DHCP_SEED={seed}");
    let mut random = Random::new(seed);
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let daemon = lab.daemon(Side::Ours, &[]);
    let connect = || UnixStream::connect(SOCKET).unwrap();
    // Some say nothing and stay.
    let idle: Vec<_> = (0..200).map(|_| connect()).collect();
    for _ in 0..300 {
        // It may be dropped while it still talks.
        let _ = connect().write_all(&noise(&mut random));
    }
    let address = address_in(&lab.add(&lab.container("c1"), &lab.config()));
    server.acknowledged(0, address);
    // And are dropped in the end.
    for mut stream in idle {
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        assert_eq!(stream.read(&mut [0; 64]).unwrap(), 0, "seed {seed}");
    }
    assert!(!daemon.log().text().contains("panic"), "{}", daemon.log().text());
}

/// The counters, as a keeper of the node will read them.
#[test]
fn metrics_tell_of_leases_and_renewals() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let address = address_in(&lab.add(&lab.container("c1"), &lab.config()));
    let given = server.acknowledged(0, address);
    server.acknowledged(given, address);
    let metrics = || {
        let mut stream = UnixStream::connect(SOCKET).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    assert!(metrics().starts_with("HTTP/1.0 200 OK\r\n"), "{}", metrics());
    podwire_tests::wait_until("the renewal's number", || {
        let text = metrics();
        ["leases{state=\"held\"} 1", "{by=\"acquired\"} 1", "{by=\"renewed\"} 1"]
            .iter()
            .all(|line| text.contains(line))
    });
}
