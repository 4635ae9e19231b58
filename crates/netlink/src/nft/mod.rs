//! nftables over netlink, without the `nft` program (`linux/netfilter/nf_tables.h`).
//!
//! [`Batch`] collects operations, [`NftSocket::commit`] does them in one transaction; the same
//! types come back from the listing methods of [`NftSocket`]. What nft itself notes in userdata
//! (comments, byte orders, type numbers) is written as nft writes it, so that `nft list ruleset`
//! shows what was meant.
//!
//! A map that translates `protocol . port` to `address . port`:
//!
//! ```no_run
//! use podwire_netlink::nft::{
//!     Batch, Chain, ChainKind, Comparison, Data, DataType, Element, Family, Field, Hook,
//!     IpVersion, NftSocket, Rule, Set, Table, TableId, priority,
//! };
//!
//! # fn main() -> Result<(), podwire_netlink::Error> {
//! const TABLE: TableId<'static> = TableId::new(Family::Ipv4, "example");
//! let map = TABLE.set("ports");
//! let chain = TABLE.chain("prerouting");
//! let mut batch = Batch::new();
//! batch.add_table(&Table::new(TABLE).with_comment("port mappings"));
//! batch.add_set(&Set::map(
//!     map,
//!     &[DataType::InetProtocol, DataType::InetService],
//!     &[DataType::Ipv4Address, DataType::InetService],
//! ));
//! let hook = Hook::Prerouting;
//! batch.add_chain(&Chain::base(chain, ChainKind::Nat, hook, priority::DESTINATION_NAT + 1));
//! batch.flush_chain(chain);
//! batch.add_rule(&Rule::new(chain).destination_is_local(Comparison::Equal).dnat_to_map(
//!     IpVersion::V4,
//!     &[Field::TransportProtocol, Field::DestinationPort],
//!     "ports",
//! ));
//! let pod = "10.1.0.5".parse().unwrap_or(std::net::Ipv4Addr::UNSPECIFIED);
//! let element = Element::new(Data::new().protocol(6).port(8080))
//!     .with_data(Data::new().ipv4(pod).port(80))
//!     .with_comment("owner");
//! batch.add_elements(map, [&element]);
//! NftSocket::open()?.commit(&batch)?;
//! # Ok(())
//! # }
//! ```

mod batch;
mod datatype;
mod decode;
mod diagnose;
mod expression;
mod expression_decode;
mod expression_encode;
mod family;
mod field;
#[cfg(test)]
mod hostile;
mod listing;
mod register;
mod rule;
mod set;
mod socket;
mod table;
mod transaction;
mod userdata;
pub mod xtables;

pub use batch::Batch;
pub use datatype::{Data, DataType, INTERFACE_NAME_LENGTH};
#[doc(hidden)]
pub use decode::read_everything;
pub use diagnose::explain;
pub use expression::{
    Comparison, ConntrackKey, Expression, FibFlags, FibResult, IpVersion, LookupTarget, MetaKey,
    NatFlags, NatKind, PayloadBase, RegisterRange, conntrack_state, conntrack_status,
};
pub use family::{ChainKind, Family, Hook, Policy, Verdict, priority};
pub use field::Field;
pub use register::Register;
pub use rule::Rule;
pub use set::{Element, ElementValue, ListedSet, Set, SetFlags};
pub use socket::NftSocket;
pub use table::{BaseChain, Chain, ChainId, SetId, Table, TableId};
pub use userdata::{COMMENT_MAX, USERDATA_MAX, UserData};
