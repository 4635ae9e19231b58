//! The ifbs of the Go plugin: `bwp` and twelve digits that follow from network
//! and container alone.
//!
//! Nothing on such a link tells whose it is, and two interfaces of a container
//! share the name. So one goes only with evidence:
//!
//! | evidence | who acts on it |
//! |---|---|
//! | prevResult lists it as an interface of the host | DEL |
//! | the attachment's host end sends its packets to it | DEL |
//! | it shapes, and no link of this host sends anything to it | DEL, GC |
//!
//! The Go plugin sets the limit on it last, so the third can't be one that is
//! just being made.

use podwire_netlink::route::Link;
use podwire_plugin::shorten;
use podwire_spec::error::Error;
use podwire_spec::id::AttachmentKey;

use super::ifb::{PREFIX, is_ifb};
use super::redirect;
use super::shaping::{is_shaper, root_of};
use crate::kernel::{Kernel, refused};

/// Digits behind the prefix.
const DIGITS: usize = 12;

/// The name that the Go plugin gives it.
pub(super) fn name(network: &str, container: &str) -> String {
    format!("{PREFIX}{}", shorten(&[network, container], DIGITS))
}

/// Whether a link looks like one.
pub(super) fn is_like(link: &Link) -> bool {
    let digits = link.name.strip_prefix(PREFIX).unwrap_or_default();
    let is_hexadecimal = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    is_ifb(link)
        && link.alias.is_none()
        && digits.len() == DIGITS
        && digits.bytes().all(is_hexadecimal)
}

/// The Go plugin's ifb of an attachment, if there is one and the evidence is
/// that it is of no other.
pub(super) fn of_attachment(
    kernel: &mut Kernel,
    key: &AttachmentKey,
    host: Option<&Link>,
    recorded: &[String],
) -> Result<Option<Link>, Error> {
    let name = name(key.network.as_str(), key.container_id.as_str());
    let link = kernel.host()?.link_by_name(&name).map_err(refused)?;
    let Some(link) = link.filter(is_like) else { return Ok(None) };
    if recorded.contains(&name) {
        return Ok(Some(link));
    }
    if let Some(host) = host
        && leads_to(kernel, host, &link)?
    {
        return Ok(Some(link));
    }
    if is_unused(kernel, &link)? {
        return Ok(Some(link));
    }
    log::warn!("{name} is left alone: another interface's packets go through it");
    Ok(None)
}

fn leads_to(kernel: &mut Kernel, host: &Link, ifb: &Link) -> Result<bool, Error> {
    let targets = redirect::targets(kernel.host()?, host)?;
    Ok(targets.iter().any(|(index, _)| *index == ifb.index))
}

/// Whether it shapes and nothing is sent to it.
pub(super) fn is_unused(kernel: &mut Kernel, ifb: &Link) -> Result<bool, Error> {
    if !root_of(kernel.host()?, ifb)?.is_some_and(|root| is_shaper(&root)) {
        return Ok(false);
    }
    for link in kernel.host()?.links().map_err(refused)? {
        match leads_to(kernel, &link, ifb) {
            Ok(false) => {}
            Ok(true) => return Ok(false),
            // Gone since the listing.
            Err(error) => {
                if kernel.host()?.link_by_index(link.index).map_err(refused)?.is_some() {
                    return Err(error);
                }
            }
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_go_plugins() {
        assert_eq!(name("n1", "c1"), "bwp7be53730afe4");
    }
}
