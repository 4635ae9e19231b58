//! What plugins read: their variables, standard input and configuration.

use podwire_plugin::{Attachment, Description, Environment, Plugin, Registry, Request, Role, Undo};
use podwire_plugins::interface::bridge::Bridge;
use podwire_plugins::interface::child::{DUMMY, IPVLAN, MACVLAN, VLAN};
use podwire_plugins::interface::host_device::HostDevice;
use podwire_plugins::interface::loopback::Loopback;
use podwire_plugins::interface::ptp::Ptp;
use podwire_plugins::interface::tap::Tap;
use podwire_plugins::ipam::Static;
use podwire_plugins::meta::bandwidth::Bandwidth;
use podwire_plugins::meta::firewall::Firewall;
use podwire_plugins::meta::portmap::Portmap;
use podwire_plugins::meta::sbr::Sbr;
use podwire_plugins::meta::tuning::Tuning;
use podwire_plugins::meta::vrf::Vrf;
use podwire_spec::error::Error;
use podwire_spec::result::CniResult;

use crate::rehearsal::{Rehearsal, VERBS, call, variables};

/// All plugins that declare what should exist.
static REHEARSALS: &Registry = &[
    &Rehearsal(Bandwidth),
    &Rehearsal(Bridge),
    &Rehearsal(DUMMY),
    &Rehearsal(Firewall),
    &Rehearsal(HostDevice),
    &Rehearsal(IPVLAN),
    &Rehearsal(Loopback),
    &Rehearsal(MACVLAN),
    &Rehearsal(Portmap),
    &Rehearsal(Ptp),
    &Rehearsal(Sbr),
    &Rehearsal(Tap),
    &Rehearsal(Tuning),
    &Rehearsal(VLAN),
    &Rehearsal(Vrf),
];

/// A plugin that reads all of its request.
struct Reader;

impl Plugin for Reader {
    fn description(&self) -> Description {
        Description::new("reader", Role::Ipam)
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        _: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let _ = (request.arguments(&["IP", "MAC"]), request.args_cni(), request.ipam().map(drop));
        let _ = (attachment.owner.to_string(), attachment.sandbox_text());
        request.require_prev_result()
    }

    fn del(&self, request: &Request<'_>, _: &Attachment) -> Result<(), Error> {
        request.prev_result().map(drop)
    }

    fn check(&self, request: &Request<'_>, _: &Attachment) -> Result<(), Error> {
        request.require_prev_result().map(drop)
    }
}

/// Five lines of variables, then standard input. No path that exists is
/// opened: a device would do something.
pub(crate) fn stdin(data: &[u8]) {
    let mut lines = data.splitn(6, |byte| *byte == b'\n');
    let mut line = || String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let environment = Environment {
        command: line(),
        container_id: line(),
        ifname: line(),
        netns: format!("/nowhere/{}", line().replace("..", "")),
        args: line(),
        ..Environment::default()
    };
    call(&Reader, &[], environment, lines.next().unwrap_or_default());
}

/// The plugin's name on the first line, then its configuration.
pub(crate) fn config(data: &[u8]) {
    let at = data.iter().position(|byte| *byte == b'\n').unwrap_or(data.len());
    let (name, text) = data.split_at(at);
    let named = REHEARSALS.iter().find(|plugin| plugin.description().name.as_bytes() == name);
    let number = usize::from(name.first().copied().unwrap_or_default()) % REHEARSALS.len();
    let Some(plugin) = named.or(REHEARSALS.get(number)) else { return };
    for verb in VERBS {
        call(*plugin, &[], variables(verb), text.get(1..).unwrap_or_default());
    }
}

/// `static`'s configuration; it touches nothing.
pub(crate) fn static_ipam(data: &[u8]) {
    for verb in VERBS {
        call(&Static, &[], variables(verb), data);
    }
}
