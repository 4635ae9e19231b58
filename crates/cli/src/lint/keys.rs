//! The keys that our own plugins know. A table beside the plugins' own code,
//! since a program that is installed without them must know them too; the
//! tests hold it against configurations that the plugins accept.

/// An object of a configuration, by the keys it may hold.
#[derive(Debug)]
pub(super) struct Shape {
    /// Keys with a plain value, or with one that isn't looked into.
    pub(super) plain: &'static [&'static str],
    /// Keys with an object, or an array of objects (of arrays of objects).
    pub(super) nested: &'static [(&'static str, &'static Shape)],
}

impl Shape {
    /// Every key.
    pub(super) fn keys(&self) -> Vec<&'static str> {
        self.plain.iter().copied().chain(self.nested.iter().map(|(key, _)| *key)).collect()
    }

    /// What stands under a key.
    pub(super) fn below(&self, key: &str) -> Option<&'static Shape> {
        self.nested
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(key))
            .map(|(_, shape)| *shape)
    }
}

/// Keys that any plugin may hold, and those that a file with a single plugin
/// has for the network. `prevResult` and `runtimeConfig` are doubtful for
/// another reason, which is told elsewhere.
pub(super) const EVERYWHERE: [&str; 13] = [
    "type",
    "name",
    "cniVersion",
    "cniVersions",
    "disableCheck",
    "disableGC",
    "capabilities",
    "args",
    "ipam",
    "dns",
    "prevResult",
    "runtimeConfig",
    // No cniVersion, and told so elsewhere.
    "version",
];

const ROUTE: Shape =
    Shape { plain: &["dst", "gw", "mtu", "advmss", "priority", "table", "scope"], nested: &[] };

const DNS: Shape = Shape { plain: &["nameservers", "domain", "search", "options"], nested: &[] };

const BANDWIDTH: Shape = Shape {
    plain: &[
        "ingressRate",
        "ingressBurst",
        "egressRate",
        "egressBurst",
        "shapedSubnets",
        "unshapedSubnets",
    ],
    nested: &[],
};

const BRIDGE: Shape = Shape {
    plain: &[
        "bridge",
        "isGateway",
        "isDefaultGateway",
        "forceAddress",
        "ipMasq",
        "ipMasqBackend",
        "mtu",
        "hairpinMode",
        "promiscMode",
        "vlan",
        "preserveDefaultVlan",
        "macspoofchk",
        "enabledad",
        "disableContainerInterface",
        "portIsolation",
    ],
    nested: &[
        ("vlanTrunk", &Shape { plain: &["id", "minID", "maxID"], nested: &[] }),
        ("dns", &DNS),
    ],
};

const DUMMY: Shape = Shape { plain: &[], nested: &[("dns", &DNS)] };

const IPVLAN: Shape = Shape {
    plain: &["master", "mode", "flag", "mtu", "linkInContainer"],
    nested: &[("dns", &DNS)],
};

const MACVLAN: Shape = Shape {
    plain: &["master", "mode", "mtu", "mac", "linkInContainer", "bcqueuelen"],
    nested: &[("dns", &DNS)],
};

const VLAN: Shape =
    Shape { plain: &["master", "vlanId", "mtu", "linkInContainer"], nested: &[("dns", &DNS)] };

const LOOPBACK: Shape = Shape { plain: &[], nested: &[] };

const PORTMAP: Shape = Shape {
    plain: &[
        "backend",
        "snat",
        "masqAll",
        "markMasqBit",
        "externalSetMarkChain",
        "conditionsV4",
        "conditionsV6",
    ],
    nested: &[],
};

const HOST_DEVICE: Shape = Shape {
    plain: &["device", "hwaddr", "kernelpath", "pciBusID", "DPDKMode", "useInterfaceNetwork"],
    nested: &[("dns", &DNS)],
};

const TAP: Shape = Shape {
    plain: &["multiQueue", "mtu", "mac", "owner", "group", "selinuxContext", "bridge"],
    nested: &[("dns", &DNS)],
};

const PTP: Shape = Shape { plain: &["ipMasq", "ipMasqBackend", "mtu"], nested: &[("dns", &DNS)] };

const FIREWALL: Shape = Shape {
    plain: &["backend", "iptablesAdminChainName", "firewalldZone", "ingressPolicy"],
    nested: &[],
};

const SBR: Shape = Shape { plain: &["table", "gateways", "addSourceHints"], nested: &[] };

const VRF: Shape = Shape { plain: &["vrfname", "table"], nested: &[] };

const RANGE: Shape =
    Shape { plain: &["subnet", "rangeStart", "rangeEnd", "gateway", "exclude"], nested: &[] };

const HOST_LOCAL: Shape = Shape {
    plain: &[
        "type",
        "subnet",
        "rangeStart",
        "rangeEnd",
        "gateway",
        "exclude",
        "resolvConf",
        "dataDir",
        "statusOnExhausted",
    ],
    nested: &[("ranges", &RANGE), ("routes", &ROUTE)],
};

const DHCP: Shape = Shape {
    plain: &["type", "daemonSocketPath", "dataDir", "priority", "clientId", "broadcast"],
    nested: &[
        ("request", &Shape { plain: &["option", "skipDefault"], nested: &[] }),
        ("provide", &Shape { plain: &["option", "value", "fromArg"], nested: &[] }),
    ],
};

const STATIC: Shape = Shape {
    plain: &["type"],
    nested: &[
        ("addresses", &Shape { plain: &["address", "gateway"], nested: &[] }),
        ("routes", &ROUTE),
        ("dns", &DNS),
    ],
};

const TUNING: Shape = Shape {
    plain: &["sysctl", "mac", "promisc", "mtu", "allmulti", "txQLen", "dataDir"],
    nested: &[],
};

/// The keys of a plugin type that is ours.
pub(super) fn of_plugin(plugin_type: &str) -> Option<&'static Shape> {
    match plugin_type {
        "vrf" => Some(&VRF),
        "sbr" => Some(&SBR),
        "firewall" => Some(&FIREWALL),
        "bandwidth" => Some(&BANDWIDTH),
        "bridge" => Some(&BRIDGE),
        "dummy" => Some(&DUMMY),
        "ipvlan" => Some(&IPVLAN),
        "host-device" => Some(&HOST_DEVICE),
        "loopback" => Some(&LOOPBACK),
        "macvlan" => Some(&MACVLAN),
        "portmap" => Some(&PORTMAP),
        "ptp" => Some(&PTP),
        "tuning" => Some(&TUNING),
        "vlan" => Some(&VLAN),
        "tap" => Some(&TAP),
        _ => None,
    }
}

/// The keys of `ipam` for an IPAM type that is ours.
pub(super) fn of_ipam(ipam_type: &str) -> Option<&'static Shape> {
    match ipam_type {
        "dhcp" => Some(&DHCP),
        "host-local" => Some(&HOST_LOCAL),
        "static" => Some(&STATIC),
        _ => None,
    }
}

/// The plugins that hand `ipam` to its plugin as it is. Others have put their
/// own meaning into it: calico has `"subnet": "usePodCidr"` there (C07).
pub(super) const HAND_IPAM_ON: [&str; 8] =
    ["bridge", "dummy", "host-device", "ipvlan", "macvlan", "ptp", "tap", "vlan"];

/// Keys of `ipam` that mean the same to every IPAM plugin.
pub(super) const IPAM_EVERYWHERE: [&str; 1] = ["routes"];
