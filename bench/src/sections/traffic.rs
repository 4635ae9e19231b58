//! What a packet pays for the mappings of others: new connections, which look
//! a mapping up, and bytes of one that stands.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use podwire_testkit::Netns;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::json;

use super::neighbours::{self, Backend};
use super::{interfaces, portmap, tolerate};
use crate::Outcome;
use crate::bench::{Bench, Container, Pass, State};
use crate::call::{with, with_previous};
use crate::subject::Subject;

/// Mappings of others.
const NEIGHBOURS: u32 = 1_000;
/// Connections of a round.
const CONNECTIONS: u32 = 1_000;
/// Bytes of a round.
const BYTES: usize = 128 << 20;
/// Rounds; the best counts.
const ROUNDS: usize = 5;
/// How often every subject has its turn; the best counts.
const TURNS: usize = 3;
/// The host as the other machine sees it.
const HOST: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

pub(super) fn run(bench: &mut Bench<'_>) -> Outcome {
    interfaces::floor_bridge(bench);
    let outside = outside(bench);
    for _ in 0..TURNS {
        let plain = direct(bench, &outside)?;
        note(bench, "without any mapping", Subject::Floor, plain);
        for (subject, backend) in [
            (Subject::Podwire, Backend::Nftables),
            (Subject::GoNew, Backend::Iptables),
            (Subject::GoNew, Backend::Nftables),
            (Subject::GoOld, Backend::Iptables),
        ] {
            if bench.subjects(&[subject]).is_empty() {
                continue;
            }
            let outcome = mapped(bench, &outside, subject, backend);
            neighbours::clear(bench, subject, backend);
            tolerate(bench, subject, outcome)?;
        }
    }
    Ok(())
}

/// Connections a second, and gigabits a second.
type Rates = (f64, f64);

fn note(bench: &mut Bench<'_>, how: &str, subject: Subject, (connections, gigabits): Rates) {
    let names = [format!("new connections a second, {how}"), format!("Gbit/s, {how}")];
    for (name, rate) in names.iter().zip([connections, gigabits]) {
        let known =
            bench.report.figures("traffic").find(|(known, _)| known == name).map(|row| row.1);
        let best = known.and_then(|values| values.get(&subject).copied());
        bench.report.figure("traffic", name, subject, rate.max(best.unwrap_or_default()));
    }
}

/// Another machine, 192.0.2.2.
fn outside(bench: &Bench<'_>) -> Netns {
    let netns = bench.world.netns("outside");
    bench.world.exec(&[
        "ip", "link", "add", "uplink", "type", "veth", "peer", "name", "eth0", "netns", "outside",
    ]);
    bench.world.exec(&["ip", "addr", "add", "192.0.2.1/24", "dev", "uplink"]);
    bench.world.exec(&["ip", "link", "set", "uplink", "up"]);
    netns.exec(&["ip", "addr", "add", "192.0.2.2/24", "dev", "eth0"]);
    netns.exec(&["ip", "link", "set", "eth0", "up"]);
    netns.exec(&["ip", "route", "add", "default", "via", "192.0.2.1"]);
    netns
}

/// Routed to the container itself, no address translated.
fn direct(bench: &mut Bench<'_>, outside: &Netns) -> Outcome<Rates> {
    let container = bench.container(Subject::Podwire);
    let bridge = bench.bridge(State::Tmpfs, Subject::Podwire, false)?;
    let call = bench.plugin(Subject::Podwire, "ADD", container.target(), &bridge)?;
    let result = call.run(Pass::Warm)?.stdout;
    let to = address(&result)?;
    let rates = rates(&container, outside, [SocketAddr::new(to, 80), SocketAddr::new(to, 81)])?;
    let bridge = with_previous(&bridge, &result)?;
    bench.plugin(Subject::Podwire, "DEL", container.target(), &bridge)?.run(Pass::Warm)?;
    bench.retire(container);
    Ok(rates)
}

fn address(result: &str) -> Outcome<IpAddr> {
    let result: serde_json::Value =
        serde_json::from_str(result).map_err(|error| error.to_string())?;
    let text = result.pointer("/ips/0/address").and_then(serde_json::Value::as_str);
    let text = text.and_then(|text| text.split('/').next()).ok_or("no address in the result")?;
    text.parse().map_err(|error| format!("{text}: {error}"))
}

/// To a port of the host whose mapping came after those of the others.
fn mapped(bench: &mut Bench<'_>, outside: &Netns, subject: Subject, backend: Backend) -> Outcome {
    let container = bench.container(subject);
    let bridge = bench.bridge(State::Tmpfs, subject, false)?;
    let call = bench.plugin(subject, "ADD", container.target(), &bridge)?;
    let result = call.run(Pass::Warm)?.stdout;
    let configure = |first: u32| {
        let config = portmap::config(&portmap::two(first), &result)?;
        let backend = json!({"backend": backend.name()});
        Ok::<_, String>(if subject == Subject::GoNew { with(&config, backend) } else { config })
    };
    // What makes the tables that neighbours are laid into.
    let lasting = bench.container(subject);
    bench.plugin(subject, "ADD", lasting.target(), &configure(9_000)?)?.run(Pass::Warm)?;
    neighbours::lay(bench, subject, backend, NEIGHBOURS)?;
    let config = configure(8_080)?;
    bench.plugin(subject, "ADD", container.target(), &config)?.run(Pass::Warm)?;
    let to = [8_080, 8_081].map(|port| SocketAddr::new(HOST, port));
    let rates = rates(&container, outside, to)?;
    let how = match (subject, backend) {
        (Subject::Podwire, _) => "a map of 1,000 mappings".to_owned(),
        (_, backend) => format!("a list of 1,000 mappings ({})", backend.name()),
    };
    note(bench, &how, subject, rates);
    bench.plugin(subject, "DEL", container.target(), &config)?.run(Pass::Warm)?;
    let bridge = with_previous(&bridge, &result)?;
    bench.plugin(subject, "DEL", container.target(), &bridge)?.run(Pass::Warm)?;
    bench.retire(container);
    bench.retire(lasting);
    bench.settle();
    Ok(())
}

/// The best of some rounds; the first address is asked for connections, the
/// second takes the bytes.
fn rates(container: &Container, outside: &Netns, to: [SocketAddr; 2]) -> Outcome<Rates> {
    container.netns.exec(&["ip", "link", "set", "lo", "up"]);
    let bind = |port: u16| {
        container
            .netns
            .run(|| TcpListener::bind(("0.0.0.0", port)))
            .map_err(|error| format!("port {port} in the container: {error}"))
    };
    let (knocks, bytes) = (bind(80)?, bind(81)?);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| on(0, || accept(&knocks, &stop, |_| ())));
        scope.spawn(|| on(1, || accept(&bytes, &stop, swallow)));
        let measure = || {
            let mut best = (0.0_f64, 0.0_f64);
            for _ in 0..ROUNDS {
                best.0 = best.0.max(connect(to[0])?);
                best.1 = best.1.max(send(to[1])?);
            }
            Ok(best)
        };
        let measured = scope.spawn(move || on(0, || outside.run(measure))).join();
        let measured = measured.unwrap_or_else(|_| Err(std::io::Error::other("a panic")));
        stop.store(true, Ordering::SeqCst);
        for port in [80, 81] {
            // Wakes the one that accepts.
            let _ = container.netns.run(|| TcpStream::connect(("127.0.0.1", port)));
        }
        measured.map_err(|error: std::io::Error| format!("{}: {error}", to[0]))
    })
}

/// On a processor of its own choice, not the kernel's: whether both ends of a connection
/// are on one makes three times more of a difference than what is in between.
fn on<T>(processor: usize, work: impl FnOnce() -> T) -> T {
    let mut one = CpuSet::new();
    one.set(processor);
    // Where that one isn't there, the numbers are what they are.
    let _ = sched_setaffinity(None, &one);
    work()
}

fn accept(listener: &TcpListener, stop: &AtomicBool, serve: impl Fn(TcpStream)) {
    while let Ok((stream, _)) = listener.accept() {
        if stop.load(Ordering::SeqCst) {
            return;
        }
        serve(stream);
    }
}

fn swallow(mut stream: TcpStream) {
    let mut buffer = vec![0; 256 << 10];
    while stream.read(&mut buffer).is_ok_and(|read| read > 0) {}
}

fn connect(to: SocketAddr) -> std::io::Result<f64> {
    let started = Instant::now();
    for _ in 0..CONNECTIONS {
        // The other side closes at once.
        TcpStream::connect(to)?.read_to_end(&mut Vec::new())?;
    }
    Ok(f64::from(CONNECTIONS) / started.elapsed().as_secs_f64())
}

fn send(to: SocketAddr) -> std::io::Result<f64> {
    let chunk = vec![7; 256 << 10];
    let started = Instant::now();
    let mut stream = TcpStream::connect(to)?;
    for _ in 0..BYTES / chunk.len() {
        stream.write_all(&chunk)?;
    }
    stream.shutdown(std::net::Shutdown::Write)?;
    stream.read_to_end(&mut Vec::new())?;
    #[allow(clippy::cast_precision_loss, reason = "far below 2^52")]
    let bits = BYTES as f64 * 8.0;
    Ok(bits / started.elapsed().as_secs_f64() / 1e9)
}
