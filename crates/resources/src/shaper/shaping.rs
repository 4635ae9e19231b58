//! What the root of a link's queues is to be.

use ipnet::IpNet;
use podwire_netlink::route::tc::filter::Match;
use podwire_netlink::route::tc::{AddQdisc, DeleteQdisc, Handle, Qdisc, QdiscKind, Tbf};
use podwire_netlink::route::{Link, RouteSocket};
use podwire_plugin::Difference;
use podwire_spec::error::Error;

use super::tree;
use crate::kernel::refused;

/// The root's name, as the Go plugin has it.
pub(super) const ROOT: Handle = Handle::new(1, 0);

/// How long packets wait beyond what the bucket takes, in microseconds.
pub(super) const LATENCY: u32 = 25_000;

/// What a frame has beyond the MTU: an Ethernet header with a VLAN tag, in
/// bytes.
const FRAME_HEADER: u32 = 18;

/// How much of a bucket's depth is lost in conversions: the Go plugin counts in
/// whole microseconds.
const ROUNDING: u32 = 64;

/// How fast, and how much at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// Bytes a second, at least 1.
    pub rate: u64,
    /// Bytes that may go at once.
    pub burst: u32,
    /// The burst as it was asked for, where [`Limit::burst`] is another:
    /// what the Go plugin will have set.
    pub asked_burst: u32,
}

impl Limit {
    /// The bucket for a link: never smaller than a frame, which then could
    /// never leave.
    pub(super) fn bucket(&self, mtu: u32) -> Tbf {
        Tbf::new(self.rate, self.burst.max(frame(mtu)), LATENCY)
    }

    /// Whether a bucket is this limit's, as we or the Go plugin set it.
    fn is_kept_by(&self, found: &Tbf, mtu: u32) -> bool {
        let asked = Tbf::new(self.rate, self.asked_burst, LATENCY);
        // Beyond 32 bits the Go plugin's depth is arbitrary.
        let any_depth = asked.buffer == u32::MAX;
        [(self.bucket(mtu), false), (asked, any_depth)].iter().any(|(wanted, any_depth)| {
            found.rate == wanted.rate
                && found.limit.abs_diff(wanted.limit) <= 1
                && (*any_depth || is_depth(found.buffer, wanted.buffer))
        })
    }
}

/// Bytes of the largest frame.
fn frame(mtu: u32) -> u32 {
    mtu.saturating_add(FRAME_HEADER)
}

/// Whether a depth read back is the one that was set, in ticks.
pub(super) fn is_depth(found: u32, wanted: u32) -> bool {
    found.abs_diff(wanted) <= ROUNDING
}

/// With whom the container's traffic is limited.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// With everybody.
    All,
    /// Only with these.
    Only(Vec<IpNet>),
    /// With everybody but these.
    Except(Vec<IpNet>),
}

/// Which way the packets go, and so where the other side's address is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// To the container: the other side is the source.
    Ingress,
    /// From the container: the other side is the destination.
    Egress,
}

impl Direction {
    /// What picks packets exchanged with a subnet.
    pub(super) fn with(self, net: IpNet) -> Match {
        match self {
            Self::Ingress => Match::Source(net),
            Self::Egress => Match::Destination(net),
        }
    }
}

/// The limit of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shaping {
    /// The limit.
    pub limit: Limit,
    /// With whom.
    pub scope: Scope,
    /// Which way.
    pub direction: Direction,
}

impl Shaping {
    /// Sets it on a link, in place of an earlier one of the same make.
    ///
    /// # Errors
    /// The kernel's refusal; another's qdisc is in the way.
    pub(super) fn apply(&self, socket: &mut RouteSocket, link: &Link) -> Result<(), Error> {
        let bucket = self.limit.bucket(link.mtu);
        if self.limit.burst < frame(link.mtu) {
            log::warn!(
                "a burst of {} bytes would let no full frame pass on {}; using {}",
                self.limit.burst,
                link.name,
                frame(link.mtu)
            );
        }
        let root = match self.scope {
            Scope::All => QdiscKind::Tbf(bucket),
            Scope::Only(_) | Scope::Except(_) => tree::root(&self.scope),
        };
        let add = AddQdisc::root(link.device(), ROOT, root);
        match socket.apply(&add) {
            Err(error) if error.is_exists() => {
                let there = root_of(socket, link)?;
                if let Some(there) = there.filter(|there| !is_shaper(there)) {
                    return Err(Error::internal(format!(
                        "qdisc {} {} on {} is in the way of the limit",
                        there.kind.name(),
                        there.handle,
                        link.name
                    ))
                    .with_details("it wasn't made by this plugin; remove it with tc qdisc del"));
                }
                clear(socket, link)?;
                socket.apply(&add).map_err(refused)?;
            }
            outcome => outcome.map_err(refused)?,
        }
        tree::fill(self, &bucket, socket, link)
    }

    /// Compares it with what is on a link.
    ///
    /// # Errors
    /// The kernel refused to tell.
    pub(super) fn check(
        &self,
        socket: &mut RouteSocket,
        link: &Link,
        found: &mut Vec<Difference>,
    ) -> Result<(), Error> {
        let name = format!("limit on {}", link.name);
        let Some(root) = root_of(socket, link)? else {
            found.push(Difference::missing(name));
            return Ok(());
        };
        match (&root.kind, &self.scope) {
            (QdiscKind::Tbf(there), Scope::All) => {
                if !self.limit.is_kept_by(there, link.mtu) {
                    let wanted = words(&self.limit.bucket(link.mtu));
                    found.push(Difference::new(name, wanted, words(there)));
                }
            }
            (QdiscKind::Htb { default_class }, _) => {
                tree::check(self, *default_class, socket, link, found)?;
            }
            (kind, scope) => {
                let wanted = if *scope == Scope::All { "qdisc tbf" } else { "qdisc htb" };
                found.push(Difference::new(name, wanted, format!("qdisc {}", kind.name())));
            }
        }
        Ok(())
    }

    /// Whether a link has a limit of this very rate.
    pub(super) fn is_on(&self, socket: &mut RouteSocket, link: &Link) -> Result<bool, Error> {
        Ok(match root_of(socket, link)? {
            Some(Qdisc { handle: ROOT, kind: QdiscKind::Tbf(there), .. }) => {
                there.rate == self.limit.rate
            }
            Some(Qdisc { handle: ROOT, kind: QdiscKind::Htb { .. }, .. }) => {
                let classes = socket.classes_of(link.device()).map_err(refused)?;
                classes.iter().any(|class| class.rate == self.limit.rate)
            }
            _ => false,
        })
    }
}

fn words(bucket: &Tbf) -> String {
    let Tbf { rate, limit, buffer } = bucket;
    format!("{rate} bytes/s, bucket of {buffer} ticks, limit {limit} bytes")
}

/// Whether a root is one that this plugin makes, or the Go one.
pub(super) fn is_shaper(root: &Qdisc) -> bool {
    root.handle == ROOT && matches!(root.kind, QdiscKind::Tbf(_) | QdiscKind::Htb { .. })
}

/// A link's root.
pub(super) fn root_of(socket: &mut RouteSocket, link: &Link) -> Result<Option<Qdisc>, Error> {
    let all = socket.qdiscs_of(link.device()).map_err(refused)?;
    Ok(all.into_iter().find(|qdisc| qdisc.parent == Handle::ROOT))
}

/// Gives a link the kernel's own root back.
pub(super) fn clear(socket: &mut RouteSocket, link: &Link) -> Result<(), Error> {
    match socket.apply(&DeleteQdisc { device: link.device(), parent: Handle::ROOT }) {
        Err(error) if !error.is_not_found() => Err(refused(error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit(burst: u32) -> Limit {
        Limit { rate: 1_000_000, burst, asked_burst: burst }
    }

    #[test]
    fn a_bucket_holds_at_least_a_frame() {
        assert_eq!(limit(10).bucket(1500), limit(1518).bucket(1500));
        assert_eq!(limit(2_000).bucket(1500).limit, 27_000);
    }

    #[test]
    fn buckets_of_the_go_plugin_count_too() {
        // Go: whole microseconds, then ticks.
        let go = Tbf { rate: 1_000_000, limit: 25_010, buffer: 156 };
        assert!(limit(10).is_kept_by(&go, 1500));
        assert!(!limit(9_000).is_kept_by(&go, 1500));
        assert!(!limit(10).is_kept_by(&Tbf { rate: 999_999, ..go }, 1500));
        assert!(!limit(10).is_kept_by(&Tbf { limit: 30_000, ..go }, 1500));
        let placeholder = Limit { rate: 1_000, burst: 100, asked_burst: u32::MAX };
        let kept = Tbf { rate: 1_000, limit: u32::MAX, buffer: 7 };
        assert!(placeholder.is_kept_by(&kept, 1500));
    }
}
