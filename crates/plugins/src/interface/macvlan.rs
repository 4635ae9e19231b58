//! The keys of `macvlan`.

use podwire_netlink::route::link_kind::MacvlanMode;
use podwire_plugin::Request;
use podwire_resources::child_link::ChildKind;
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;

use super::child::{Config, parent};
use super::keys;

/// Reads them.
///
/// # Errors
/// Code 6 for a value of the wrong type, code 7 for one that can't be served.
pub(super) fn read(request: &Request<'_>, _: Operation, config: &mut Config) -> Result<(), Error> {
    let object = request.object();
    let mode = match object.text_of("mode")?.as_deref() {
        None | Some("bridge") => MacvlanMode::Bridge,
        Some("private") => MacvlanMode::Private,
        Some("vepa") => MacvlanMode::Vepa,
        Some("passthru") => MacvlanMode::Passthru,
        Some(other) => {
            return Err(Error::config(format!("unknown macvlan mode: {other:?}"))
                .with_details("mode is one of bridge, private, vepa, passthru"));
        }
    };
    let broadcast_queue_length = object.integer::<u32>("bcqueuelen")?.filter(|length| *length != 0);
    config.kind = ChildKind::Macvlan { mode, broadcast_queue_length };
    config.parent = Some(parent(object)?);
    config.mtu = keys::mtu(object)?;
    config.mac = keys::mac(request, object.text_of("mac")?)?;
    Ok(())
}
