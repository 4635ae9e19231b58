//! Real packets through port maps and masquerade sets, and what connection tracking says of them.
//!
//! Three namespaces: a client, this host, and a pod; the rules are the host's.

#![allow(clippy::unwrap_used)] // Test code throughout.

mod nft_support;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use nft_support::{assert_contains, private_namespace, run, shell};
use podwire_netlink::conntrack::{ConntrackSocket, Endpoint, Tuple};
use podwire_netlink::nft::{
    Batch, Chain, ChainKind, Comparison, Data, DataType, Element, Family, Field, Hook, IpVersion,
    NftSocket, Rule, Set, Table, TableId, conntrack_status, priority,
};

const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "podwire");
const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 2);
const POD: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 5);
const DEADLINE: Duration = Duration::from_secs(10);

/// Work for a thread of another namespace.
type Work = Box<dyn FnOnce() + Send>;

/// A namespace of its own, in which a thread does what it is sent.
struct Elsewhere {
    work: mpsc::Sender<Work>,
    thread: u32,
}

impl Elsewhere {
    fn new() -> Self {
        let (work, received) = mpsc::channel::<Work>();
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            private_namespace();
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).unwrap();
            for work in received {
                work();
            }
        });
        Self { work, thread: told.recv().unwrap() }
    }

    /// Does something there and returns what it returns.
    fn run<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = mpsc::channel();
        self.work.send(Box::new(move || tell.send(work()).unwrap())).unwrap();
        told.recv().unwrap()
    }
}

/// A host with a client on one side and a pod on the other.
fn topology() -> (Elsewhere, Elsewhere) {
    private_namespace();
    let (client, pod) = (Elsewhere::new(), Elsewhere::new());
    let setup = format!(
        "ip link add client type veth peer name eth0 netns {client}
         ip link add pod type veth peer name eth0 netns {pod}
         ip addr add {HOST}/24 dev client
         ip addr add 10.1.0.1/24 dev pod
         ip link set client up
         ip link set pod up
         echo 1 > /proc/sys/net/ipv4/ip_forward",
        client = client.thread,
        pod = pod.thread,
    );
    shell(&setup);
    client.run(|| shell(&format!("ip addr add {CLIENT}/24 dev eth0; ip link set eth0 up")));
    pod.run(|| {
        shell(&format!(
            "ip addr add {POD}/24 dev eth0; ip link set eth0 up; ip route add default via 10.1.0.1"
        ))
    });
    (client, pod)
}

/// Listens in the pod, for one connection, and reports who came.
fn serve_once(pod: &Elsewhere, port: u16) -> mpsc::Receiver<SocketAddr> {
    let (tell, told) = mpsc::channel();
    let listener = pod.run(move || TcpListener::bind((POD, port)).unwrap());
    thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.write_all(b"pod").unwrap();
        // Who hears of it may listen on the same port next.
        drop(listener);
        tell.send(peer).unwrap();
    });
    told
}

fn connect(address: Ipv4Addr, port: u16) -> String {
    let mut stream = TcpStream::connect_timeout(&(address, port).into(), DEADLINE).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

#[test]
fn a_mapped_port_leads_to_the_pod() {
    let (client, pod) = topology();
    let map = TABLE.set("ports");
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    batch.add_set(&Set::map(
        map,
        &[DataType::InetProtocol, DataType::InetService],
        &[DataType::Ipv4Address, DataType::InetService],
    ));
    let fields = [Field::TransportProtocol, Field::DestinationPort];
    for (name, hook) in [("prerouting", Hook::Prerouting), ("output", Hook::Output)] {
        let chain = TABLE.chain(name);
        let order = priority::DESTINATION_NAT + 1;
        batch.add_chain(&Chain::base(chain, ChainKind::Nat, hook, order));
        batch.add_rule(&Rule::new(chain).destination_is_local(Comparison::Equal).dnat_to_map(
            IpVersion::V4,
            &fields,
            "ports",
        ));
    }
    let target = Data::new().ipv4(POD).port(80);
    let element = Element::new(Data::new().protocol(6).port(8080)).with_data(target);
    batch.add_elements(map, [&element]);
    let mut nft = NftSocket::open().unwrap();
    nft.commit(&batch).unwrap();

    let visitor = serve_once(&pod, 80);
    assert_eq!(client.run(|| connect(HOST, 8080)), "pod");
    assert_eq!(visitor.recv_timeout(DEADLINE).unwrap().ip(), CLIENT);
    // From the host itself, too.
    let visitor = serve_once(&pod, 80);
    assert_eq!(connect(HOST, 8080), "pod");
    assert_eq!(visitor.recv_timeout(DEADLINE).unwrap().ip(), HOST);

    // Connection tracking knows them, as translated.
    let mut conntrack = ConntrackSocket::open().unwrap();
    let known = conntrack.connections(Some(IpVersion::V4)).unwrap();
    let from_client: Vec<_> =
        known.iter().filter(|known| known.original.source == CLIENT).collect();
    assert_eq!(from_client.len(), 1, "{known:?}");
    let known = from_client[0];
    assert_eq!(known.original.destination, HOST);
    assert_eq!(known.original.destination_port(), Some(8080));
    assert_eq!((known.reply.source, known.reply.source_port()), (POD.into(), Some(80)));
    assert_ne!(known.status & conntrack_status::DESTINATION_NAT, 0);
    assert_eq!(known.original.protocol, 6);
    assert_eq!(conntrack.connections(Some(IpVersion::V6)).unwrap(), []);

    // Without the element, the port is closed.
    let mut batch = Batch::new();
    batch.destroy_elements(map, [&element]);
    nft.commit(&batch).unwrap();
    let refused = client.run(|| TcpStream::connect_timeout(&(HOST, 8080).into(), DEADLINE));
    assert_eq!(refused.unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
}

#[test]
fn a_pod_in_the_set_is_masqueraded_except_to_its_own_network() {
    let (client, pod) = topology();
    let pods = TABLE.set("pods");
    let chain = TABLE.chain("postrouting");
    let mut batch = Batch::new();
    batch.add_table(&Table::new(TABLE));
    let address = DataType::Ipv4Address;
    batch.add_set(&Set::new(pods, &[address]));
    batch.add_set(&Set::new(TABLE.set("networks"), &[address, address]).with_intervals());
    let (kind, hook) = (ChainKind::Nat, Hook::Postrouting);
    batch.add_chain(&Chain::base(chain, kind, hook, priority::SOURCE_NAT));
    batch.add_rule(
        &Rule::new(chain)
            .in_set(&[Field::Ipv4Source], "pods")
            .not_in_set(&[Field::Ipv4Source, Field::Ipv4Destination], "networks")
            .masquerade(),
    );
    batch.add_elements(pods, [&Element::new(POD).with_comment("owner")]);
    let mut nft = NftSocket::open().unwrap();
    nft.commit(&batch).unwrap();

    let seen_source = || {
        let listener = client.run(|| UdpSocket::bind((CLIENT, 5000)).unwrap());
        listener.set_read_timeout(Some(DEADLINE)).unwrap();
        // Another source port each time, so that it is another connection.
        pod.run(|| UdpSocket::bind((POD, 0)).unwrap().send_to(b"x", (CLIENT, 5000)).unwrap());
        listener.recv_from(&mut [0; 8]).unwrap().1.ip()
    };
    // The client has no route to the pod's network: only a translated packet could be answered.
    assert_eq!(seen_source(), HOST);
    let mut batch = Batch::new();
    let range = Element::new(Data::new().ipv4(POD).ipv4(Ipv4Addr::new(192, 0, 2, 0)))
        .with_key_end(Data::new().ipv4(POD).ipv4(Ipv4Addr::new(192, 0, 2, 255)));
    batch.add_elements(TABLE.set("networks"), [&range]);
    nft.commit(&batch).unwrap();
    assert_eq!(seen_source(), POD);
    let mut batch = Batch::new();
    batch.delete_elements(TABLE.set("networks"), [&range]);
    nft.commit(&batch).unwrap();
    assert_eq!(seen_source(), HOST);
}

#[test]
fn connections_are_forgotten_as_conntrack_shows() {
    private_namespace();
    // Made by the conntrack program, of both IP versions and several protocols.
    shell(
        "conntrack -I -p udp -s 192.0.2.2 -d 192.0.2.1 --sport 4000 --dport 53 -r 10.1.0.5 -q 192.0.2.2 --reply-port-src 5353 --reply-port-dst 4000 -t 100 -u SEEN_REPLY -m 7
         conntrack -I -p udp -s 192.0.2.3 -d 192.0.2.1 --sport 4000 --dport 54 -t 100
         conntrack -I -p tcp -s 192.0.2.4 -d 192.0.2.1 --sport 4000 --dport 80 --state ESTABLISHED -t 100
         conntrack -I -p icmp -s 192.0.2.5 -d 192.0.2.1 --icmp-type 8 --icmp-code 0 --icmp-id 9 -t 100
         conntrack -I -p udp -s 2001:db8::2 -d 2001:db8::1 --sport 4000 --dport 53 -t 100 -w 3",
    );
    let mut conntrack = ConntrackSocket::open().unwrap();
    let all = conntrack.connections(None).unwrap();
    assert_eq!(all.len(), 5, "{all:#?}");
    let translated = all.iter().find(|one| one.reply.source == Ipv4Addr::new(10, 1, 0, 5)).unwrap();
    assert_eq!(translated.reply.source_port(), Some(5353));
    assert_eq!(translated.mark, 7);
    assert_ne!(translated.status & conntrack_status::SEEN_REPLY, 0);
    assert!(translated.timeout.is_some_and(|seconds| seconds <= 100));
    assert!(translated.id.is_some());
    assert!(all.iter().any(|one| one.zone == 3));
    let echo = Endpoint::Icmp { id: 9, kind: 8, code: 0 };
    assert!(all.iter().any(|one| one.original.endpoint == echo));

    // By port, of one IP version: the other version's stays.
    let to_port_53 = |one: &podwire_netlink::conntrack::Connection| {
        one.original.protocol == 17 && one.original.destination_port() == Some(53)
    };
    assert_eq!(conntrack.delete_matching(Some(IpVersion::V4), to_port_53).unwrap(), 1);
    let listed = || run("conntrack", &["-L"]) + &run("conntrack", &["-L", "-f", "ipv6"]);
    let left = listed();
    assert!(!left.contains("192.0.2.2"), "{left}");
    assert_contains(&left, "src=2001:db8::2");
    assert_contains(&left, "src=192.0.2.3");
    assert_eq!(conntrack.delete_matching(None, to_port_53).unwrap(), 1);
    assert_eq!(conntrack.delete_matching(None, to_port_53).unwrap(), 0);

    // By tuple.
    let tcp = Tuple {
        source: Ipv4Addr::new(192, 0, 2, 4).into(),
        destination: Ipv4Addr::new(192, 0, 2, 1).into(),
        protocol: 6,
        endpoint: Endpoint::Ports { source: 4000, destination: 80 },
        zone: None,
    };
    conntrack.delete(&tcp, 0).unwrap();
    let error = conntrack.delete(&tcp, 0).unwrap_err();
    assert!(error.is_not_found());
    assert_eq!(
        error.to_string(),
        "deleting tracked connection protocol 6 from 192.0.2.4 port 4000 to 192.0.2.1 port 80: \
         No such file or directory"
    );
    let icmp = |one: &podwire_netlink::conntrack::Connection| one.original.endpoint == echo;
    assert_eq!(conntrack.delete_matching(None, icmp).unwrap(), 1);
    let left = listed();
    assert_contains(&left, "src=192.0.2.3");
    assert_eq!(conntrack.connections(None).unwrap().len(), 1);
}

/// More than one round of deletions.
#[test]
fn many_connections_are_forgotten() {
    private_namespace();
    run("nft", &["add table ip t; add chain ip t c { type filter hook output priority 0; }"]);
    run("nft", &["add rule ip t c ct state new counter"]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for port in 1000..1300 {
        // Nobody listens; the packet is tracked all the same.
        let _ = socket.send_to(b"x", ("127.0.0.1", port));
    }
    let mut conntrack = ConntrackSocket::open().unwrap();
    let sent = |one: &podwire_netlink::conntrack::Connection| {
        one.original.destination_port().is_some_and(|port| (1000..1300).contains(&port))
    };
    let tracked = conntrack.matching(None, sent).unwrap().len();
    assert!(tracked > 256, "{tracked}");
    assert_eq!(conntrack.delete_matching(None, sent).unwrap(), tracked);
    assert_eq!(conntrack.matching(None, sent).unwrap(), []);
}
