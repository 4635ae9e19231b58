//! The result of a plugin whose one interface is the container's.

use podwire_plugin::Attachment;
use podwire_spec::result::{CniResult, Dns, Interface};

use super::dns;

/// The container's interface, all addresses on it, and the DNS settings that count.
/// Its MAC address is known once it is made.
pub(crate) fn only_interface(attachment: &Attachment, mut base: CniResult, dns: &Dns) -> CniResult {
    base.interfaces = vec![Interface {
        name: attachment.ifname().to_string(),
        sandbox: Some(attachment.sandbox_text()),
        ..Interface::default()
    }];
    for ip in &mut base.ips {
        ip.interface = Some(0);
    }
    dns::prefer(dns, &mut base);
    base
}
