//! A bridge with containers, one of them checked.

use std::net::IpAddr;

use podwire_plugin::{Collection, Difference, OwnerMark, Resource, Sandbox, Valid};
use podwire_resources::Kernel;
use podwire_resources::spoof_check::{SpoofCheck, SpoofChecks};
use podwire_spec::error::Error;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};
use podwire_testkit::probe::{ANSWER, ping};
use podwire_testkit::{Netns, World};

/// The bridge's address.
pub(crate) const BRIDGE: &str = "10.1.0.1";

pub(crate) struct Lab {
    pub(crate) world: World,
}

impl Lab {
    pub(crate) fn new() -> Self {
        let world = World::new();
        run(&world, "ip link add cni0 type bridge");
        run(&world, &format!("ip addr add {BRIDGE}/24 dev cni0"));
        run(&world, "ip link set cni0 up");
        Self { world }
    }

    /// A container on the bridge, with a host end of its own name.
    pub(crate) fn container(&self, name: &str, address: &str) -> Netns {
        let namespace = self.world.netns(name);
        let path = namespace.path().display();
        run(&self.world, &format!("ip link add h-{name} type veth peer name eth0 netns {path}"));
        run(&self.world, &format!("ip link set h-{name} master cni0 up"));
        namespace.exec(&["ip", "link", "set", "eth0", "up"]);
        namespace.exec(&["ip", "addr", "add", &format!("{address}/24"), "dev", "eth0"]);
        // A new pair drops frames until the kernel noticed that it is up.
        ping(&namespace, ip(BRIDGE), ANSWER).unwrap();
        namespace
    }

    pub(crate) fn ruleset(&self) -> String {
        self.world.exec(&["nft", "list", "ruleset"]).stdout
    }
}

#[track_caller]
pub(crate) fn run(world: &World, command: &str) {
    world.exec(&command.split(' ').collect::<Vec<_>>());
}

pub(crate) fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Gives a container's interface another MAC address, as one that forges
/// frames would.
#[track_caller]
pub(crate) fn set_mac(namespace: &Netns, mac: &str) {
    namespace.exec(&["ip", "link", "set", "eth0", "address", mac]);
}

pub(crate) fn mac(namespace: &Netns) -> String {
    namespace.ip_json(&["link", "show", "eth0"])[0]["address"].as_str().unwrap().to_owned()
}

pub(crate) fn spoof_check(container: &str) -> SpoofCheck {
    spoof_check_of("n1", container)
}

pub(crate) fn spoof_check_of(network: &str, container: &str) -> SpoofCheck {
    let key = AttachmentKey {
        network: NetworkName::parse(network).unwrap(),
        container_id: ContainerId::parse(container).unwrap(),
        ifname: IfName::parse("eth0").unwrap(),
    };
    SpoofCheck::new(OwnerMark::of(&key), &key)
}

/// The handles of one plugin call.
#[track_caller]
pub(crate) fn kernel(sandbox: &Netns) -> Kernel {
    let sandbox = Sandbox::open(sandbox.path().to_str().unwrap()).unwrap();
    Kernel::new(Some(&sandbox)).unwrap()
}

/// ADD.
#[track_caller]
pub(crate) fn add(container: &str, sandbox: &Netns) {
    spoof_check(container).make(&mut kernel(sandbox)).unwrap();
}

/// DEL without a sandbox.
#[track_caller]
pub(crate) fn del(container: &str) {
    spoof_check(container).remove(&mut Kernel::new(None).unwrap()).unwrap();
}

/// CHECK: the differences.
#[track_caller]
pub(crate) fn check(container: &str, sandbox: &Netns) -> Vec<Difference> {
    spoof_check(container).check(&mut kernel(sandbox)).unwrap()
}

/// GC of a network; returns what was removed.
#[track_caller]
pub(crate) fn gc(network: &str, valid: &[(&str, &str)]) -> Vec<String> {
    let valid = Valid::new(&NetworkName::parse(network).unwrap(), valid.iter().copied());
    let mut kernel = Kernel::new(None).unwrap();
    let stale = SpoofChecks.stale(&mut kernel, &valid).unwrap();
    let removed: Result<Vec<_>, Error> =
        stale.iter().map(|one| one.remove(&mut kernel).map(|()| one.describe())).collect();
    removed.unwrap()
}
