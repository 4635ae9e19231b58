//! `macvlan`, `ipvlan`, `vlan` and `dummy`: plugins whose whole work is one
//! interface in the container, with addresses from IPAM or none. They differ in
//! their keys, which their own files read.

use podwire_netlink::route::MacAddress;
use podwire_netlink::route::link_kind::{IpvlanIsolation, IpvlanMode, MacvlanMode};
use podwire_plugin::{Addresses, Attachment, Description, Facts, Inventory, Plan, Request, Role};
use podwire_resources::Kernel;
use podwire_resources::child_link::{
    self, ChildKind, ChildLink, Evidence, Parent, ParentName, Place,
};
use podwire_resources::interface::{DuplicateDetection, Interface, Settled};
use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::id::IfName;
use podwire_spec::json::Object;
use podwire_spec::operation::Operation;
use podwire_spec::result::{CniResult, Dns};
use podwire_spec::version::SpecVersion;

use super::keys::{self, flag};
use super::only::only_interface;
use super::{dummy, ipvlan, macvlan, vlan};

/// A plugin of this kind.
pub struct Child {
    name: &'static str,
    /// The interface, as far as DEL needs to know it.
    kind: ChildKind,
    /// Whether it tells its neighbours when it comes up.
    announces: bool,
    /// Reads the plugin's own keys into the defaults.
    read: fn(&Request<'_>, Operation, &mut Config) -> Result<(), Error>,
}

/// `dummy`: an interface that drops what is sent through it.
pub const DUMMY: Child =
    Child { name: "dummy", kind: ChildKind::Dummy, announces: false, read: dummy::read };

/// `ipvlan`: addresses of its own on a device of the host, whose MAC address it
/// shares.
pub const IPVLAN: Child = Child {
    name: "ipvlan",
    kind: ChildKind::Ipvlan { mode: IpvlanMode::L2, isolation: IpvlanIsolation::Bridge },
    announces: true,
    read: ipvlan::read,
};

/// `macvlan`: a MAC address of its own on a device of the host.
pub const MACVLAN: Child = Child {
    name: "macvlan",
    kind: ChildKind::Macvlan { mode: MacvlanMode::Bridge, broadcast_queue_length: None },
    announces: true,
    read: macvlan::read,
};

/// `vlan`: a VLAN of a device of the host.
pub const VLAN: Child =
    Child { name: "vlan", kind: ChildKind::Vlan { id: 0 }, announces: false, read: vlan::read };

/// What the interface is to be.
#[derive(Debug)]
pub struct Config {
    /// Its kind, with the settings of the kind.
    pub kind: ChildKind,
    /// What it hangs on; none if it stands alone, or where that is not known any
    /// more.
    pub parent: Option<Parent>,
    /// Its MTU in bytes; the parent's if none.
    pub mtu: Option<u32>,
    /// The MAC address asked for.
    pub mac: Option<MacAddress>,
    /// Where its addresses come from.
    pub addresses: Addresses,
    /// DNS from the configuration, which replaces IPAM's.
    pub dns: Dns,
    /// The configuration's version.
    pub version: SpecVersion,
}

impl Inventory for Child {
    type Config = Config;
    type Kernel = Kernel;

    fn description(&self) -> Description {
        Description::new(self.name, Role::Interface)
    }

    /// For DEL and GC only IPAM counts: neither the master nor a mistake
    /// anywhere else is a reason to keep an address.
    fn parse(&self, request: &Request<'_>, operation: Operation) -> Result<Config, Error> {
        let has_ipam = !request.config.ipam_type.is_empty();
        let mut config = Config {
            kind: self.kind,
            parent: None,
            mtu: None,
            mac: None,
            addresses: Addresses::delegated_if(has_ipam),
            dns: Dns::default(),
            version: request.version,
        };
        if !matches!(operation, Operation::Del | Operation::Gc) {
            config.dns = request.config.dns.clone();
            (self.read)(request, operation, &mut config)?;
        }
        Ok(config)
    }

    fn addresses(&self, config: &Config) -> Addresses {
        config.addresses
    }

    fn complete(
        &self,
        config: &Config,
        attachment: &Attachment,
        base: CniResult,
    ) -> Result<CniResult, Error> {
        Ok(only_interface(attachment, base, &config.dns))
    }

    fn foundation(
        &self,
        config: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let ifname = attachment.ifname().as_str();
        let evidence = Evidence::of(facts.result, ifname, config.version)
            .or_mtu(keys::expected_mtu(config.version, config.mtu));
        let mut link = ChildLink::new(attachment, config.kind, evidence);
        link.parent.clone_from(&config.parent);
        link.mtu = config.mtu;
        link.mac = config.mac;
        Ok(vec![Box::new(link)])
    }

    /// Duplicate addresses are looked for as the kernel is set up, and waited
    /// for: other machines share the segment.
    fn desired(
        &self,
        _: &Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<Kernel>, Error> {
        let nothing = CniResult::default();
        let result = facts.result.unwrap_or(&nothing);
        let ifname = attachment.ifname().as_str();
        let mut inside = Interface::from_result(result, ifname);
        let announces = self.announces && !inside.addresses.is_empty();
        inside.duplicate_detection = DuplicateDetection::Kernel;
        inside.announce = announces;
        inside.announce_ipv6 = announces;
        let has_ipv6 = inside.addresses.iter().any(|address| address.addr().is_ipv6());
        let mut plan: Plan<Kernel> = vec![Box::new(inside)];
        if has_ipv6 {
            plan.push(Box::new(Settled { ifname: ifname.to_owned() }));
        }
        Ok(plan)
    }

    fn observe(
        &self,
        _: &Config,
        attachment: &Attachment,
        kernel: &mut Kernel,
        result: &mut CniResult,
    ) -> Result<(), Error> {
        let made = kernel.made_child(attachment.ifname().as_str());
        let mac = made.and_then(|link| link.mac).map(|mac| mac.to_string());
        if let Some(interface) = result.interfaces.first_mut() {
            interface.mac = mac;
        }
        Ok(())
    }

    fn ready(&self, config: &Config, kernel: &mut Kernel) -> Result<(), Error> {
        child_link::could_serve(kernel, config.kind, config.parent.as_ref())
    }
}

/// `master` and `linkInContainer`; without `master`, the default route tells.
///
/// # Errors
/// Code 6 for a wrong type, code 7 for what is no interface's name.
pub(super) fn parent(object: &Object<'_>) -> Result<Parent, Error> {
    let name = match object.text_of("master")? {
        None => ParentName::DefaultRoute,
        Some(name) => {
            IfName::parse(&name).map_err(|error| Error {
                code: ErrorCode::InvalidConfiguration,
                ..error.context(format!("master {name:?}"))
            })?;
            ParentName::Named(name.into_owned())
        }
    };
    let in_container = flag(object, "linkInContainer")?;
    Ok(Parent { name, place: if in_container { Place::Container } else { Place::Host } })
}
