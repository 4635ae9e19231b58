//! The runtimes, with one way to call them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use podwire_testkit::state::Difference;
use podwire_testkit::{HostState, Output};
use podwire_tests::lab::{addresses, routes};
use podwire_tests::normal::normalised;
use podwire_tests::{Container, Node, Plugins, wait_until};
use serde_json::{Value, json};

/// A runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// The small Go program around libcni.
    Libcni,
    /// Our command.
    Podwire,
}

/// A node, who makes the calls on it, and what was seen so far.
pub(crate) struct Stage {
    pub(crate) node: Node,
    drivers: &'static [Driver],
    plugins: Plugins,
    turn: Cell<usize>,
    seen: RefCell<BTreeMap<String, String>>,
}

impl Stage {
    pub(crate) fn new(drivers: &'static [Driver], plugins: Plugins) -> Self {
        let node = Node::new(plugins);
        Self { node, drivers, plugins, turn: Cell::new(0), seen: RefCell::default() }
    }

    /// Everything that was seen.
    pub(crate) fn story(&self) -> BTreeMap<String, String> {
        self.seen.borrow().clone()
    }

    /// Notes what was seen, under a name that nothing else has.
    #[track_caller]
    pub(crate) fn note(&self, name: &str, what: &impl ToString) {
        let former = self.seen.borrow_mut().insert(name.to_owned(), normalised(&what.to_string()));
        assert_eq!(former, None, "{name} a second time");
    }

    /// The next call is the next one's in turn.
    fn next(&self) -> Driver {
        let turn = self.turn.get();
        self.turn.set(turn + 1);
        self.drivers[turn % self.drivers.len()]
    }

    fn podwire(&self, arguments: &[&str]) -> Output {
        let own = std::env::current_exe().unwrap();
        let program = own.ancestors().nth(2).unwrap().join("podwire");
        let plugins = self.node.plugin_directory();
        let start = [program.to_str().unwrap(), "--plugin-dir", plugins.to_str().unwrap()];
        self.node.world.try_exec(&[&start, arguments].concat())
    }

    /// `add`, `check` or `del` of a container's interface.
    #[track_caller]
    pub(crate) fn call(&self, verb: &str, network: &str, who: &Container, more: &Value) -> Output {
        let netns = who.netns.path().to_str().unwrap();
        let args: Vec<_> = who.args.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let (args, more) = (args.join(";"), more.to_string());
        let common = ["--container-id", &who.id, "--ifname", &who.ifname, "--args", &args];
        match self.next() {
            Driver::Libcni => {
                let start = [verb, "--network", network, "--netns", netns];
                let all = [&start[..], &common, &["--capability-args", &more]].concat();
                self.node.libcni().run(&all)
            }
            Driver::Podwire => {
                let start = [verb, network, netns];
                self.podwire(&[&start[..], &common, &["--cap-args", &more]].concat())
            }
        }
    }

    /// The same without capability arguments.
    #[track_caller]
    pub(crate) fn on(&self, verb: &str, network: &str, who: &Container) -> Output {
        self.call(verb, network, who, &json!({}))
    }

    /// A successful ADD; notes the result and what became of it.
    #[track_caller]
    pub(crate) fn add(&self, network: &str, who: &Container, more: &Value) -> Value {
        let result = self.call("add", network, who, more).success().json();
        let mut told = result.clone();
        for interface in told["interfaces"].as_array_mut().unwrap() {
            // Ours tells the MTU that tuning set, which Go's keeps to itself (B065).
            interface.as_object_mut().unwrap().remove("mtu");
        }
        self.note(&format!("{network} {} result", who.id), &told);
        self.look(&format!("{network} {}", who.id), who);
        result
    }

    /// Notes what is in a container.
    pub(crate) fn look(&self, name: &str, who: &Container) {
        let mut inside = addresses(&who.netns, &who.ifname);
        inside.sort();
        self.note(&format!("{name} addresses"), &inside.join(", "));
        self.note(&format!("{name} routes"), &routes(&who.netns).join(", "));
        let link = who.netns.ip_json(&["link", "show", &who.ifname]);
        self.note(&format!("{name} mtu"), &link[0]["mtu"]);
    }

    /// `status` of a network.
    #[track_caller]
    pub(crate) fn status(&self, network: &str) -> Output {
        match self.next() {
            Driver::Libcni => self.node.libcni().status("status", network),
            Driver::Podwire => self.podwire(&["status", network]),
        }
    }

    /// `validate` of a network's file.
    #[track_caller]
    pub(crate) fn validate(&self, network: &str) -> Output {
        match self.next() {
            Driver::Libcni => self.node.libcni().status("validate", network),
            Driver::Podwire => {
                self.podwire(&["validate", &format!("/etc/cni/net.d/{network}.conflist")])
            }
        }
    }

    /// `gc` of a network that keeps these.
    #[track_caller]
    pub(crate) fn gc(&self, network: &str, keep: &[&Container]) -> Output {
        match self.next() {
            Driver::Libcni => self.node.libcni().gc(network, keep),
            Driver::Podwire => {
                let kept: Vec<_> =
                    keep.iter().map(|one| format!("--keep={}:{}", one.id, one.ifname)).collect();
                let mut line = vec!["gc", network];
                line.extend(kept.iter().map(String::as_str));
                if keep.is_empty() {
                    line.push("--all");
                }
                self.podwire(&line)
            }
        }
    }

    /// Whether both runtimes know the attachment, and with which result.
    #[track_caller]
    pub(crate) fn assert_recorded(&self, network: &str, who: &Container, result: &Value) {
        let cached = self.node.libcni().on("cached-result", network, who).success().json();
        assert_eq!(&cached, result);
        let listing = self.node.runtime().store().list().unwrap();
        assert!(listing.unreadable.is_empty(), "{:?}", listing.unreadable);
        let of_it = listing.attachments.iter().filter(|one| {
            one.record.key.network.as_str() == network
                && one.record.key.container_id.as_str() == who.id
        });
        let records: Vec<_> = of_it.collect();
        assert_eq!(records.len(), 1);
        let ours: Value = serde_json::from_str(&records[0].record.result).unwrap();
        assert_eq!(&ours, result);
    }

    /// What is left since `before` beyond what may stay.
    #[track_caller]
    pub(crate) fn left(&self, before: &HostState) -> Difference {
        self.node.left(before).without(|change| {
            let name = change.name();
            // What libcni has detached is forgotten by the next collection of ours.
            name.starts_with("file /var/lib/cni/podwire/sandboxes/")
                // Go's DEL and GC leave the masquerading of a container whose address or
                // namespace went first, and the chains of its portmap.
                || self.plugins == Plugins::Sid
                    && name.starts_with("nft ")
                    && name.split(' ').nth(3) == Some("nat")
        })
    }

    /// Panics if anything is.
    #[track_caller]
    pub(crate) fn assert_nothing_left(&self, before: &HostState) {
        if self.plugins == Plugins::Sid {
            // Go's DEL doesn't wait until the kernel has taken down a namespace that is
            // gone, and with it the host's end.
            wait_until("the end of the pairs", || {
                let left = self.left(before).changes;
                !left.iter().any(|change| change.name().starts_with("link veth"))
            });
        }
        self.left(before).assert_empty();
    }

    /// How many attachments both runtimes have records of.
    #[track_caller]
    pub(crate) fn records(&self) -> usize {
        let of_go = self.node.libcni().run(&["cached-attachments"]).success().json();
        let ours = self.node.runtime().store().list().unwrap().attachments.len();
        assert_eq!(of_go.as_array().map_or(0, Vec::len), ours, "{of_go}");
        ours
    }
}

/// `ok`, or that it failed.
pub(crate) fn outcome(output: &Output) -> &'static str {
    if output.code == 0 { "ok" } else { "fails" }
}

/// Panics unless it failed and said these words.
#[track_caller]
pub(crate) fn fails_about(output: Output, words: &[&str]) {
    let output = output.failure();
    let said = format!("{}{}", output.stdout, output.stderr);
    for word in words {
        assert!(said.contains(word), "{word} is not in {output:#?}");
    }
}
