//! The host's own chains for what it routes: `FORWARD` of the table `filter`,
//! IPv4 and IPv6.
//!
//! An accept in a table of ours can't override a drop in the host's, so these
//! rules go where the host has its own, in the very form in which
//! `iptables-nft` writes, lists and deletes them:
//!
//! ```text
//! -A FORWARD -m comment --comment "CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)" -j CNI-ISOLATION-STAGE-1
//! -A FORWARD -m comment --comment "CNI firewall plugin rules" -j CNI-FORWARD
//! -A CNI-FORWARD -m comment --comment "CNI firewall plugin admin overrides" -j CNI-ADMIN
//! -A CNI-FORWARD -d 10.1.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -m comment --comment "<mark> n1/c1/eth0" -j ACCEPT
//! -A CNI-FORWARD -s 10.1.0.2/32 -m comment --comment "<mark> n1/c1/eth0" -j ACCEPT
//! -A CNI-ISOLATION-STAGE-1 -i cni0 ! -o cni0 -m comment --comment "CNI firewall plugin rules (ingressPolicy: same-bridge)" -j CNI-ISOLATION-STAGE-2
//! -A CNI-ISOLATION-STAGE-1 -m comment --comment "CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)" -j RETURN
//! -A CNI-ISOLATION-STAGE-2 -o cni0 -m comment --comment "CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)" -j DROP
//! -A CNI-ISOLATION-STAGE-2 -m comment --comment "CNI firewall plugin rules (ingressPolicy: same-bridge|isolated)" -j RETURN
//! ```
//!
//! Chains, order and comments of what is shared are the Go plugin's, since
//! administrators and other tools look for them. A container's rules carry
//! its owner mark: DEL and garbage collection find them by it, also without
//! prevResult, and never take those of an address's next owner (B020, B082).
//! What is shared goes with the last who needs it; the administrator's chain
//! is never deleted, and keeps what leads to it while it holds rules.
//!
//! Each change looks and commits as one step, in a number of exchanges that
//! doesn't grow with the number of containers. Only where legacy xtables are
//! in use, their own tool is run, with a bound on how long.

mod accepts;
mod collection;
mod filter;
mod isolation;
pub(crate) mod members;
mod ready;
mod rule;
mod view;

pub use accepts::Accepts;
pub use collection::HostChains;
pub use isolation::{IngressPolicy, Isolation};
pub use members::NAME as MEMBERS_TABLE;
pub use ready::available;
