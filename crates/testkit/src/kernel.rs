//! What a test needs of the kernel beyond what every kernel has.

use crate::world::World;

/// Something that a kernel may be built without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// Bridges that filter VLANs (`CONFIG_BRIDGE_VLAN_FILTERING`).
    BridgeVlanFiltering,
    /// VLAN interfaces (`CONFIG_VLAN_8021Q`).
    Vlan,
    /// IPVLAN interfaces (`CONFIG_IPVLAN`).
    Ipvlan,
    /// MACVLAN interfaces (`CONFIG_MACVLAN`).
    Macvlan,
    /// Virtual routing tables as links (`CONFIG_NET_VRF`).
    Vrf,
    /// Dummy links (`CONFIG_DUMMY`).
    Dummy,
    /// Bonds (`CONFIG_BONDING`).
    Bond,
    /// Persistent tap devices (`CONFIG_TUN`).
    Tap,
    /// Queueing by token bucket and redirection to an ifb (`CONFIG_NET_SCH_TBF`,
    /// `CONFIG_IFB`).
    Shaping,
    /// IPv6 that wasn't switched off when the kernel was booted.
    Ipv6,
}

impl Feature {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::BridgeVlanFiltering,
        Self::Vlan,
        Self::Ipvlan,
        Self::Macvlan,
        Self::Vrf,
        Self::Dummy,
        Self::Bond,
        Self::Tap,
        Self::Shaping,
        Self::Ipv6,
    ];

    /// Command lines that work only with it, in a network namespace with a veth pair
    /// `probe0` and `probe1`.
    fn probes(self) -> &'static [&'static str] {
        match self {
            Self::BridgeVlanFiltering => &["ip link add probe type bridge vlan_filtering 1"],
            Self::Vlan => &["ip link add link probe0 probe type vlan id 7"],
            Self::Ipvlan => &["ip link add link probe0 probe type ipvlan"],
            Self::Macvlan => &["ip link add link probe0 probe type macvlan"],
            Self::Vrf => &["ip link add probe type vrf table 7"],
            Self::Dummy => &["ip link add probe type dummy"],
            Self::Bond => &["ip link add probe type bond"],
            Self::Tap => &["ip tuntap add probe mode tap"],
            Self::Shaping => &[
                "ip link add probe type ifb",
                "tc qdisc add dev probe0 root tbf rate 1mbit burst 10k latency 10ms",
            ],
            Self::Ipv6 => &["ip addr add fd00::1/64 dev probe0"],
        }
    }
}

impl World {
    /// Panics unless the kernel has the feature. Tests that need one which this
    /// project's ordinary build machines lack stand in a test program whose name
    /// begins with `vm_`, and this is their first line.
    #[track_caller]
    pub fn needs(&self, feature: Feature) {
        assert!(
            self.has(feature),
            "this kernel lacks {feature:?}; such tests run by: cargo xtask vmtest"
        );
    }

    /// Whether the kernel has the feature, found out by trying.
    #[track_caller]
    pub fn has(&self, feature: Feature) -> bool {
        let namespace = self.netns("probe");
        namespace.exec(&["ip", "link", "add", "probe0", "type", "veth", "peer", "probe1"]);
        let works = feature
            .probes()
            .iter()
            .all(|probe| namespace.try_exec(&probe.split(' ').collect::<Vec<_>>()).code == 0);
        namespace.remove();
        works
    }
}
