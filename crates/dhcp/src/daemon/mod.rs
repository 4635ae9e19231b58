//! The daemon: one thread that waits for clients, packets and times.
//!
//! It holds no descriptor and no thread per lease: a lease at rest is a record
//! and a time. Sockets are open in a container's namespace only while an answer
//! is due, so that neither keeps a dead namespace alive.

mod allocate;
mod apply;
mod arguments;
pub(crate) mod connection;
mod exchange;
mod guest_port;
mod interface;
mod lease;
mod listener;
mod poll;
mod release;
mod resume;
mod serve;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use podwire_netlink::route::RouteSocket;
use podwire_plugin::{OwnerMark, log_to_stderr};
use podwire_sys::lock::FileLock;
use podwire_sys::netns::NetNs;
use podwire_sys::service::Signals;

use crate::machine::{Millis, Timing};
use crate::metrics::{Gauge, Metrics};
use crate::store::Store;

pub use arguments::{Arguments, HELP, Settings};
pub use serve::attachment_half;

use connection::Connection;
use exchange::Heard;
use guest_port::GuestPort;
use interface::Host;
use lease::{Lease, Outcome, Tools};
use listener::Listener;
use poll::{Poll, Token, now};

/// Exchanges that go on at the same time without somebody waiting for them.
const MOST_EXCHANGES: usize = 128;
/// How long a renewal is put off when that many go on.
const PUT_OFF: Millis = 100;
/// Packets read from one socket before others get their turn.
const PACKETS_A_TURN: usize = 32;

/// Runs the daemon with the arguments behind `daemon`, until SIGTERM.
///
/// Bad flags end it with 2, a failed start with 1, `--help` and SIGTERM with 0.
pub fn run(arguments: impl IntoIterator<Item = String>) -> ExitCode {
    let settings = match Arguments::parse(arguments) {
        Ok(Arguments::Help) => {
            return match io::stdout().write_all(HELP.as_bytes()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(_) => ExitCode::FAILURE,
            };
        }
        Ok(Arguments::Run(settings)) => settings,
        Err(error) => {
            let text = format!("dhcp daemon: {error}\nTry: dhcp daemon --help\n");
            let _ = io::stderr().write_all(text.as_bytes());
            return ExitCode::from(2);
        }
    };
    log_to_stderr("dhcp");
    match Daemon::start(&settings).and_then(|mut daemon| daemon.serve()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

struct Daemon {
    settings: Settings,
    tools: Tools,
    poll: Poll,
    _signals: Signals,
    listener: Listener,
    /// So that no other daemon works on the same leases.
    _lock: FileLock,
    _pidfile: Option<PidFile>,
    leases: BTreeMap<u64, Lease>,
    numbers: BTreeMap<OwnerMark, u64>,
    connections: BTreeMap<u64, Connection>,
    /// What is due when.
    agenda: BTreeSet<(Millis, Token)>,
    next_number: u64,
}

impl Daemon {
    fn start(settings: &Settings) -> Result<Self, String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        // First, since the socket may be passed as the lowest descriptor.
        let listener = Listener::open(&settings.socket)?;
        let store = Store::new(&settings.data);
        store.prepare().map_err(|error| text(&error))?;
        let lock = FileLock::exclusive(store.lock_file(), Duration::ZERO).map_err(|error| {
            format!("another DHCP daemon keeps its leases in {}: {error}", settings.data.display())
        })?;
        let signals = Signals::termination().map_err(|error| text(&error))?;
        let mut host = Host {
            home: NetNs::current().map_err(|error| text(&error))?,
            routes: RouteSocket::open().map_err(|error| text(&error))?,
            prefix: settings.host_prefix.clone(),
            boot: podwire_sys::boot::boot_id().map_err(|error| text(&error))?.as_str().to_owned(),
            guest_port: GuestPort::default(),
        };
        host.guest_port.close(&mut host.routes);
        let poll = Poll::new().map_err(|error| text(&error))?;
        poll.watch(&signals, Token::Signals)
            .and_then(|()| poll.watch(&listener, Token::Listener))
            .map_err(|error| text(&error))?;
        let pidfile = settings.pidfile.as_deref().map(PidFile::write).transpose()?;
        let mut daemon = Self {
            settings: settings.clone(),
            tools: Tools { host, store, metrics: Metrics::default() },
            poll,
            _signals: signals,
            listener,
            _lock: lock,
            _pidfile: pidfile,
            leases: BTreeMap::new(),
            numbers: BTreeMap::new(),
            connections: BTreeMap::new(),
            agenda: BTreeSet::new(),
            next_number: 0,
        };
        daemon.resume()?;
        daemon.listener.show()?;
        log::info!(
            "listening at {}, {} leases in {}",
            settings.socket.display(),
            daemon.leases.len(),
            settings.data.display()
        );
        Ok(daemon)
    }

    /// Works until SIGTERM. Leases stay as they are.
    fn serve(&mut self) -> Result<(), String> {
        loop {
            let due = self.agenda.first().map(|(due, _)| *due);
            let port_due = self.tools.host.guest_port.due();
            let due = due.map_or(port_due, |due| Some(port_due.map_or(due, |port| due.min(port))));
            let ready = self.poll.wait(due).map_err(|error| format!("waiting: {error}"))?;
            for token in ready {
                match token {
                    Token::Signals => {
                        log::info!("ending; {} leases are kept", self.leases.len());
                        let Host { guest_port, routes, .. } = &mut self.tools.host;
                        guest_port.close(routes);
                        return Ok(());
                    }
                    Token::Listener => self.accept(),
                    Token::Connection(number) => self.talk(number),
                    Token::Lease(number) => self.hear(number),
                }
            }
            self.fire();
        }
    }

    /// Does what is due.
    fn fire(&mut self) {
        let Host { guest_port, routes, .. } = &mut self.tools.host;
        guest_port.wake(routes, now());
        let mut busy = self.leases.values().filter(|lease| lease.exchange.is_some()).count();
        while let Some((due, token)) = self.agenda.first().copied() {
            let moment = now();
            if due > moment {
                return;
            }
            self.agenda.remove(&(due, token));
            match token {
                Token::Connection(number) => self.drop_client(number),
                Token::Lease(number) => {
                    let Some(lease) = self.leases.get_mut(&number) else { continue };
                    lease.planned = None;
                    let in_background = lease.waiting.is_empty() && lease.exchange.is_none();
                    if in_background && busy >= MOST_EXCHANGES {
                        lease.planned = Some(moment + PUT_OFF);
                        self.agenda.insert((moment + PUT_OFF, token));
                        continue;
                    }
                    let outcome = lease.wake(&mut self.tools, moment);
                    busy += usize::from(in_background && lease.exchange.is_some());
                    self.settle(number, &outcome);
                }
                Token::Signals | Token::Listener => {}
            }
        }
    }

    /// Reads a lease's socket.
    fn hear(&mut self, number: u64) {
        for _ in 0..PACKETS_A_TURN {
            let Some(lease) = self.leases.get_mut(&number) else { return };
            let Some(exchange) = &lease.exchange else { return };
            match exchange.hear() {
                Heard::Silence => return,
                Heard::Noise => self.tools.metrics.ignored += 1,
                Heard::Message(arrived) => {
                    let outcome =
                        lease.receive(&mut self.tools, &arrived.message, arrived.hardware, now());
                    self.settle(number, &outcome);
                }
            }
        }
    }

    /// Takes a lease in.
    fn keep(&mut self, lease: Lease) -> u64 {
        let number = self.number();
        self.numbers.insert(lease.mark, number);
        self.leases.insert(number, lease);
        self.settle(number, &Outcome::Continues);
        number
    }

    /// Draws the consequences of what a lease did: tells who waits, watches its
    /// socket, plans its next moment.
    fn settle(&mut self, number: u64, outcome: &Outcome) {
        let Some(lease) = self.leases.get_mut(&number) else { return };
        match outcome {
            Outcome::Continues => {}
            Outcome::Held => {
                let waiting = std::mem::take(&mut lease.waiting);
                let reply = serve::lease_reply(lease);
                for connection in waiting {
                    self.answer(connection, &reply);
                }
            }
            Outcome::Ended(why) => {
                self.finish(number, why);
                return;
            }
        }
        let Some(lease) = self.leases.get_mut(&number) else { return };
        if let Some(exchange) = lease.exchange.as_ref().filter(|_| !lease.watched) {
            match self.poll.watch(exchange, Token::Lease(number)) {
                Ok(()) => lease.watched = true,
                // The next try opens another.
                Err(error) => {
                    log::warn!("{}: {error}", lease.record.key);
                    lease.exchange = None;
                }
            }
        }
        let due = lease.due();
        if due != lease.planned {
            if let Some(planned) = lease.planned {
                self.agenda.remove(&(planned, Token::Lease(number)));
            }
            if let Some(due) = due {
                self.agenda.insert((due, Token::Lease(number)));
            }
            lease.planned = due;
        }
    }

    /// Takes a lease out, telling who waits for it.
    fn finish(&mut self, number: u64, why: &str) {
        let Some(lease) = self.leases.remove(&number) else { return };
        self.numbers.remove(&lease.mark);
        if let Some(planned) = lease.planned {
            self.agenda.remove(&(planned, Token::Lease(number)));
        }
        if lease.waiting.is_empty() {
            log::info!("{why}");
        }
        let reply = serve::failure(why);
        for connection in lease.waiting {
            self.answer(connection, &reply);
        }
    }

    fn number(&mut self) -> u64 {
        self.next_number += 1;
        self.next_number
    }

    fn timing(&self) -> Timing {
        Timing { answer: self.settings.timeout, pause: self.settings.resend_max }
    }

    fn gauge(&self) -> Gauge {
        let held = self.leases.values().filter(|lease| lease.machine.terms().is_some()).count();
        Gauge { held, looking: self.leases.len() - held }
    }
}

/// A seed for a machine's random numbers.
fn seed() -> u64 {
    podwire_sys::random::bytes::<8>().map_or_else(|_| now(), u64::from_ne_bytes)
}

/// The file with the process id; goes when the daemon ends in good order.
#[derive(Debug)]
struct PidFile(std::path::PathBuf);

impl PidFile {
    fn write(path: &Path) -> Result<Self, String> {
        let text = std::process::id().to_string();
        let durability = podwire_sys::file::Durability::Volatile;
        podwire_sys::file::write_atomic(path, text.as_bytes(), 0o644, durability)
            .map_err(|error| format!("pidfile: {error}"))?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
