//! A DHCP server in a namespace of its own: started, stopped, given another range.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use ipnet::Ipv4Net;
use podwire_testkit::{Background, Log, Netns};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::process::Signal;

use super::event::Event;
use super::leases::{self, Lease};
use super::software::Software;
use crate::node::wait_until;

/// No event of a server may take longer, renewals included: lease times in tests
/// are some seconds.
const PATIENCE: Duration = Duration::from_secs(40);

/// What a server hands out.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The network.
    pub subnet: Ipv4Net,
    /// The server's own address.
    pub own: Ipv4Addr,
    /// First and last address.
    pub range: (Ipv4Addr, Ipv4Addr),
    /// How long a lease lasts. dnsmasq makes it two minutes at least.
    pub lease: Duration,
    /// When a client shall renew (option 58).
    pub renew: Duration,
    /// When it shall ask any server (option 59).
    pub rebind: Duration,
    /// Routers (option 3).
    pub router: Option<Ipv4Addr>,
    /// Classless static routes (option 121): destination and gateway.
    pub routes: Vec<(&'static str, Ipv4Addr)>,
    /// Name servers (option 6).
    pub name_servers: Vec<Ipv4Addr>,
    /// Domain name (option 15).
    pub domain: Option<&'static str>,
    /// Interface MTU (option 26).
    pub mtu: Option<u16>,
}

impl Default for Settings {
    /// 10.9.0.10 to .99 of 10.9.0.0/24 for 10 s, renewal after 3 s (dnsmasq ignores less), the server as router.
    fn default() -> Self {
        Self {
            subnet: Ipv4Net::new_assert(Ipv4Addr::new(10, 9, 0, 0), 24),
            own: Ipv4Addr::new(10, 9, 0, 1),
            range: (Ipv4Addr::new(10, 9, 0, 10), Ipv4Addr::new(10, 9, 0, 99)),
            lease: Duration::from_secs(10),
            renew: Duration::from_secs(3),
            rebind: Duration::from_secs(7),
            router: Some(Ipv4Addr::new(10, 9, 0, 1)),
            routes: Vec::new(),
            name_servers: Vec::new(),
            domain: None,
            mtu: None,
        }
    }
}

impl Settings {
    /// The same with leases that end after 5 s.
    #[must_use]
    pub fn brief(self) -> Self {
        let (lease, rebind) = (Duration::from_secs(5), Duration::from_secs(4));
        Self { lease, rebind, ..self }
    }

    /// The same with a range that has no address in common with the default one.
    #[must_use]
    pub fn moved(self) -> Self {
        Self { range: (Ipv4Addr::new(10, 9, 0, 150), Ipv4Addr::new(10, 9, 0, 199)), ..self }
    }

    /// The same in another network.
    #[must_use]
    pub fn elsewhere(self) -> Self {
        Self {
            subnet: Ipv4Net::new_assert(Ipv4Addr::new(10, 9, 1, 0), 24),
            own: Ipv4Addr::new(10, 9, 1, 1),
            range: (Ipv4Addr::new(10, 9, 1, 10), Ipv4Addr::new(10, 9, 1, 99)),
            router: self.router.map(|_| Ipv4Addr::new(10, 9, 1, 1)),
            ..self
        }
    }

    /// Whether an address is in the range.
    pub fn has(&self, address: Ipv4Addr) -> bool {
        (self.range.0..=self.range.1).contains(&address)
    }
}

/// One server and everything it ever wrote, over restarts too.
#[derive(Debug)]
pub struct Server {
    /// Whose server it is.
    pub software: Software,
    /// What it hands out now.
    pub settings: Settings,
    netns: Netns,
    directory: PathBuf,
    log: Log,
    process: Option<Background>,
}

impl Server {
    /// Starts one on `eth0` of the namespace, gives that its address, and waits until it listens.
    #[track_caller]
    pub fn start(netns: &Netns, software: Software, settings: Settings) -> Self {
        let directory = Path::new("/run/world/dhcp").join(netns.name());
        std::fs::create_dir_all(&directory).unwrap();
        let (log, netns) = (Log::default(), netns.clone());
        let mut server = Self { software, settings, netns, directory, log, process: None };
        server.run();
        server
    }

    #[track_caller]
    fn run(&mut self) {
        let mark = self.log.mark();
        let address = format!("{}/{}", self.settings.own, self.settings.subnet.prefix_len());
        self.netns.exec(&["ip", "addr", "flush", "dev", "eth0"]);
        self.netns.exec(&["ip", "addr", "add", &address, "dev", "eth0"]);
        let command = self.software.command(&self.directory, &self.settings);
        let process = self.netns.run(|| Background::spawn(command, &self.log));
        let software = self.software;
        self.log.wait_for(mark, "its start", PATIENCE, |line| software.is_started(line));
        // Some say so a moment before they are.
        let table = format!("/proc/{}/net/udp", process.id());
        wait_until("listening on port 67", || {
            let table = std::fs::read_to_string(&table).unwrap_or_default();
            table.contains(":0043 ")
        });
        self.process = Some(process);
    }

    /// Stops it in good order and starts it again; it knows its leases.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.run();
    }

    /// Stops it in good order.
    #[track_caller]
    pub fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.terminate();
        }
    }

    /// Starts it again after [`Server::stop`].
    #[track_caller]
    pub fn resume(&mut self) {
        assert!(self.process.is_none(), "it runs");
        self.run();
    }

    /// Stops it, has it hand out something else, and starts it again.
    #[track_caller]
    pub fn reconfigure(&mut self, settings: Settings) {
        self.stop();
        self.settings = settings;
        self.run();
    }

    /// The place in the log to wait from.
    pub fn mark(&self) -> usize {
        self.log.mark()
    }

    /// All it wrote.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Waits for an event; returns the place after it.
    #[track_caller]
    pub fn wait(&self, mark: usize, event: Event) -> usize {
        let software = self.software;
        let is_it = |line: &str| software.shows(event, line);
        self.log.wait_for(mark, &format!("{event:?}"), PATIENCE, is_it).0
    }

    /// Waits until it gave or renewed the lease of an address.
    #[track_caller]
    pub fn acknowledged(&self, mark: usize, address: Ipv4Addr) -> usize {
        self.wait(mark, Event::Acknowledged(address))
    }

    /// Waits until it gave or renewed the lease of any address; returns the place
    /// after it, and the address.
    #[track_caller]
    pub fn next_acknowledged(&self, mark: usize) -> (usize, Ipv4Addr) {
        let software = self.software;
        let is_it = |line: &str| software.acknowledged(line).is_some();
        let (mark, line) = self.log.wait_for(mark, "any lease", PATIENCE, is_it);
        (mark, software.acknowledged(&line).expect("it was there a moment ago"))
    }

    /// Waits until it took a release of an address; returns the place after it.
    #[track_caller]
    pub fn released(&self, mark: usize, address: Ipv4Addr) -> usize {
        if self.software != Software::Udhcpd {
            return self.wait(mark, Event::Released(address));
        }
        // Soon enough that it can't be the lease's end: it was renewed a third ago.
        let deadline = Instant::now() + self.settings.lease * 6 / 10;
        while self.leases().iter().any(|lease| lease.address == address) {
            assert!(Instant::now() < deadline, "{address} was not released");
        }
        self.log.mark()
    }

    /// How often an event is in the log from `mark` on.
    pub fn count(&self, mark: usize, event: Event) -> usize {
        let software = self.software;
        self.log.since(mark).iter().filter(|line| software.shows(event, line)).count()
    }

    /// Waits until it holds that many leases for someone, and returns them. It
    /// writes its files a moment after it answers.
    #[track_caller]
    pub fn wait_for_leases(&self, count: usize) -> Vec<Lease> {
        let deadline = Instant::now() + PATIENCE / 4;
        loop {
            let leases = self.leases();
            if leases.len() == count {
                return leases;
            }
            assert!(Instant::now() < deadline, "{count} leases, but: {leases:#?}");
        }
    }

    /// The leases that it holds for someone now, from its own files.
    #[track_caller]
    pub fn leases(&self) -> Vec<Lease> {
        if let (Software::Udhcpd, Some(process)) = (self.software, &self.process) {
            // It writes its file when it is told to.
            let written = Written::of(&self.directory.join("leases"));
            process.signal(Signal::USR1);
            written.wait();
        }
        leases::read(self.software, &self.directory)
    }
}

/// Waits for a file to be closed after writing.
struct Written(OwnedFd);

impl Written {
    #[track_caller]
    fn of(file: &Path) -> Self {
        let events = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&events, file, inotify::WatchFlags::CLOSE_WRITE).unwrap();
        Self(events)
    }

    #[track_caller]
    fn wait(self) {
        let mut events = [PollFd::new(&self.0, PollFlags::IN)];
        let patience = Timespec { tv_sec: 10, tv_nsec: 0 };
        let count = poll(&mut events, Some(&patience)).unwrap();
        assert_eq!(count, 1, "the lease file was not written");
    }
}
