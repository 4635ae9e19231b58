//! The plugins that the program holds.

use podwire_plugin::{Inventoried, Registry};

use crate::interface::bridge::Bridge;
use crate::interface::child::{DUMMY, IPVLAN, MACVLAN, VLAN};
use crate::interface::host_device::HostDevice;
use crate::interface::loopback::Loopback;
use crate::interface::ptp::Ptp;
use crate::interface::tap::Tap;
use crate::ipam::{Dhcp, HostLocal, Static};
use crate::meta::bandwidth::Bandwidth;
use crate::meta::firewall::Firewall;
use crate::meta::portmap::Portmap;
use crate::meta::sbr::Sbr;
use crate::meta::tuning::Tuning;
use crate::meta::vrf::Vrf;

/// All of them, in alphabetical order. The program is installed under each
/// one's name.
pub static PLUGINS: &Registry = &[
    &Inventoried(Bandwidth),
    &Inventoried(Bridge),
    &Dhcp,
    &Inventoried(DUMMY),
    &Inventoried(Firewall),
    &Inventoried(HostDevice),
    &HostLocal,
    &Inventoried(IPVLAN),
    &Inventoried(Loopback),
    &Inventoried(MACVLAN),
    &Inventoried(Portmap),
    &Inventoried(Ptp),
    &Inventoried(Sbr),
    &Static,
    &Inventoried(Tap),
    &Inventoried(Tuning),
    &Inventoried(VLAN),
    &Inventoried(Vrf),
];
