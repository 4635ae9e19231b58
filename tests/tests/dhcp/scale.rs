//! Many leases in one daemon. `PODWIRE_DHCP_LEASES=2000` has as many as a large
//! node; CI has fewer, for the sake of time.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use podwire_tests::dhcp::wire::{ACK, DISCOVER, OFFER, REQUEST, Request, frame};
use podwire_tests::dhcp::{
    Lab, Responder, Server, Settings, Side, Software, Wiring, address_in, address_of,
};
use podwire_tests::lab::with;
use serde_json::json;

const SERVER: Ipv4Addr = Ipv4Addr::new(10, 64, 0, 1);
const SERVER_MAC: [u8; 6] = [2, 0, 0, 0, 0, 1];
/// Seconds.
const DAY: u32 = 86_400;
/// Interfaces in one namespace.
const TOGETHER: usize = 100;
/// The most memory for 2,000 leases, in KiB.
const MOST_MEMORY: u64 = 20 * 1024;
/// The container whose renewals tell the time.
const CLOCK: &str = "clock";

/// A server of 10.64.0.0/16 with leases of a day, but three seconds until the
/// renewal of one container. It tells of that one's renewals.
fn server(lab: &Lab) -> (Responder, mpsc::Receiver<Instant>) {
    let (told, renewals) = mpsc::channel();
    let mut leases: HashMap<Vec<u8>, Ipv4Addr> = HashMap::new();
    let responder = Responder::start(&lab.server, move |request: &Request| {
        let next = u32::from(SERVER) + 1 + u32::try_from(leases.len()).unwrap();
        let yours = *leases.entry(request.client.clone()).or_insert_with(|| next.into());
        let is_clock = request.client.windows(CLOCK.len()).any(|part| part == CLOCK.as_bytes());
        if is_clock && !request.client_address.is_unspecified() {
            let _ = told.send(Instant::now());
        }
        let renewal = if is_clock { 3 } else { DAY / 2 };
        answer(request, yours, renewal)
    });
    (responder, renewals)
}

/// Offers and agrees; a lease lasts a day.
fn answer(request: &Request, yours: Ipv4Addr, renewal: u32) -> Vec<Vec<u8>> {
    let kind = match request.kind {
        DISCOVER => OFFER,
        REQUEST => ACK,
        _ => return Vec::new(),
    };
    let (server, lease, renewal) = (SERVER.octets(), DAY.to_be_bytes(), renewal.to_be_bytes());
    let options: [(u8, &[u8]); 5] =
        [(54, &server), (51, &lease), (58, &renewal), (1, &[255, 255, 0, 0]), (3, &server)];
    let answer = request.answer(kind, yours, &options);
    vec![frame((SERVER_MAC, SERVER), (request.mac, yours), &answer)]
}

/// The time that a process's threads had a processor.
fn processor_time(process: u32) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let nanoseconds = threads.map(|thread| {
        let path = thread.unwrap().path().join("schedstat");
        let text = std::fs::read_to_string(path).unwrap();
        text.split_whitespace().next().unwrap().parse::<u64>().unwrap()
    });
    Duration::from_nanos(nanoseconds.sum())
}

/// Resident memory of a process in KiB.
fn memory(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn many_leases_cost_little() {
    let count: usize =
        std::env::var("PODWIRE_DHCP_LEASES").map_or(200, |count| count.parse().unwrap());
    let lab = Lab::new(Wiring::Macvlan);
    lab.server.exec(&["ip", "link", "set", "eth0", "address", "02:00:00:00:00:01"]);
    lab.server.exec(&["ip", "addr", "add", "10.64.0.1/16", "dev", "eth0"]);
    let (_server, renewals) = server(&lab);
    let daemon = lab.daemon(Side::Ours, &[]);
    let empty = memory(daemon.id());
    let config = with(&lab.config(), &json!({"type": "dhcp"}));

    let began = Instant::now();
    for group in 0..count.div_ceil(TOGETHER) {
        let netns = lab.world.netns(&format!("group{group}"));
        let members = TOGETHER.min(count - group * TOGETHER);
        let lines = |line: &dyn Fn(usize) -> String| {
            let lines: Vec<_> = (0..members).map(line).collect();
            lab.world.write("batch", lines.join("\n")).display().to_string()
        };
        // Private: nobody hears the others' broadcasts.
        let links = lines(&|member| {
            format!("link add m{member} link up0 netns group{group} type macvlan mode private")
        });
        lab.host(&format!("ip -batch {links}"));
        let up = lines(&|member| format!("link set m{member} up"));
        netns.exec(&["ip", "-batch", &up]);
        for member in 0..members {
            let plugin = lab.world.plugin("dhcp").command("ADD").netns(&netns);
            let plugin = plugin.container(&format!("c{group}-{member}"));
            let result = plugin.ifname(&format!("m{member}")).config(&config).run();
            address_in(&result.success().json());
        }
    }
    let acquired = began.elapsed();

    // Rest, for as long as the one container takes from renewal to renewal.
    lab.add(&lab.container(CLOCK), &lab.config());
    let patience = Duration::from_secs(30);
    let from = renewals.recv_timeout(patience).unwrap();
    let before = processor_time(daemon.id());
    let until = renewals.recv_timeout(patience).unwrap();
    let used = processor_time(daemon.id()).saturating_sub(before);
    let share = used.as_secs_f64() / (until - from).as_secs_f64() * 100.0;
    let (full, files) = (memory(daemon.id()), open_files(daemon.id()));
    println!(
        "{count} leases in {acquired:.1?}; {full} KiB resident ({empty} without any), \
         {files} open files; {share:.2} % of a core at rest"
    );
    assert!(full <= MOST_MEMORY, "{full} KiB for {count} leases");
    // One that asks again and again, instead of sleeping until something is due, uses
    // far more on any machine; a machine that is busy may show a few ticks more.
    assert!(share < 10.0, "{share:.2} % of a core at rest");
}

/// A node that starts: all its containers at once, and all go at once.
#[test]
fn a_crowd_gets_an_address_each() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let _daemon = lab.daemon(Side::Ours, &[]);
    let config = lab.config();
    let containers: Vec<_> = (0..30).map(|number| lab.container(&format!("c{number}"))).collect();
    let all = |verb: &str| {
        let calls: Vec<_> = containers.iter().map(|one| lab.call(verb, one, &config)).collect();
        let threads = calls.into_iter().map(|call| std::thread::spawn(move || call.run()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().map(|thread| thread.join().unwrap().success()).collect::<Vec<_>>()
    };
    let mut given: Vec<_> = all("ADD").iter().map(|output| address_in(&output.json())).collect();
    let mut used: Vec<_> = containers.iter().map(address_of).collect();
    let leases = server.wait_for_leases(containers.len());
    let mut leased: Vec<_> = leases.iter().map(|lease| lease.address).collect();
    for addresses in [&mut given, &mut used, &mut leased] {
        addresses.sort_unstable();
    }
    assert_eq!(given, used);
    assert_eq!(given, leased);
    given.dedup();
    assert_eq!(given.len(), containers.len());
    all("DEL");
    server.wait_for_leases(0);
}

/// Lost packets cost a second each, not the whole time of a try.
#[test]
fn lost_packets_are_sent_again_soon() {
    let lab = Lab::new(Wiring::Bridge);
    lab.server.exec(&["ip", "addr", "add", "10.64.0.1/16", "dev", "eth0"]);
    let mut seen: HashMap<u8, u32> = HashMap::new();
    let _server = Responder::start(&lab.server, move |request: &Request| {
        let times = seen.entry(request.kind).or_default();
        *times += 1;
        // The first of each kind is lost.
        if *times == 1 { Vec::new() } else { answer(request, Ipv4Addr::new(10, 64, 0, 2), 3600) }
    });
    let _daemon = lab.daemon(Side::Ours, &[]);
    let container = lab.container("c1");
    let began = Instant::now();
    lab.add(&container, &lab.config());
    let took = began.elapsed();
    assert!(took < Duration::from_secs(6), "{took:?}");
}

fn open_files(process: u32) -> usize {
    std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count()
}
