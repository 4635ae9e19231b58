//! What a refusal of nftables means, where the error number alone misleads.
//!
//! A kernel without the module for an expression or a chain kind answers ENOENT, as for a table
//! that isn't there. The extended acknowledgement points at the attribute that it stumbled
//! over, which tells the two apart.

use super::Family;
use super::batch::kind;
use super::decode::NFGENMSG;
use crate::attribute::{Attribute, Attributes, align};
use crate::error::{Cause, Refusal};
use crate::message::HEADER;
use rustix::io::Errno;

/// Expressions that name another object, for which ENOENT means that it isn't there.
const REFERRING: [&str; 4] = ["lookup", "immediate", "objref", "dynset"];

/// The cause of a refused operation, whose message is given.
pub(super) fn cause(refusal: Refusal, kind: u16, message: &[u8]) -> Cause {
    match missing(&refusal, kind, message) {
        Some(what) => Cause::Unsupported(what),
        None => Cause::Kernel(refusal),
    }
}

/// Explains a refusal with `ENOENT` of the operation that `message` is, a whole message
/// with its header: for tests that feed it what was never sent.
pub fn explain(kind: u8, offset: u32, message: &[u8]) -> Option<String> {
    let refusal = Refusal { errno: Errno::NOENT, message: None, offset: Some(offset) };
    missing(&refusal, u16::from(kind), message)
}

/// What this kernel lacks, if that's what the refusal says.
fn missing(refusal: &Refusal, kind: u16, message: &[u8]) -> Option<String> {
    if refusal.errno != Errno::NOENT {
        return None;
    }
    let offset = usize::try_from(refusal.offset?).ok()?;
    let family = Family::from_number(*message.get(HEADER)?)?;
    let top = Attributes::new(message.get(HEADER + NFGENMSG..)?);
    let (attribute, at) = find(top, HEADER + NFGENMSG, offset)?;
    match (kind, attribute.kind) {
        // NFTA_CHAIN_TYPE
        (kind::NEW_CHAIN, 7) => {
            Some(format!("nftables chains of type {} in family {family}", attribute.string()))
        }
        // NFTA_RULE_EXPRESSIONS
        (kind::NEW_RULE, 4) => {
            let (element, _) = find(attribute.nested(), at + 4, offset)?;
            let name = element.nested().find_kind(1).ok()??.string();
            match name.as_str() {
                name if REFERRING.contains(&name) => None,
                "match" | "target" => {
                    let data = element.nested().find_kind(2).ok()??;
                    let extension = data.nested().find_kind(1).ok()??.string();
                    Some(format!("the xtables {name} \"{extension}\" (of this revision)"))
                }
                name => Some(format!("the nftables expression \"{name}\" in family {family}")),
            }
        }
        _ => None,
    }
}

/// The attribute that contains or starts at an offset, and where it starts.
fn find(attributes: Attributes<'_>, start: usize, offset: usize) -> Option<(Attribute<'_>, usize)> {
    let mut at = start;
    for attribute in attributes {
        let attribute = attribute.ok()?;
        let end = at.checked_add(align(4 + attribute.payload.len()))?;
        if (at..end).contains(&offset) {
            return Some((attribute, at));
        }
        at = end;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Body, Flags, Requests};
    use crate::nft::batch::Batch;
    use crate::nft::{Chain, ChainKind, Hook, TableId};

    const TABLE: TableId<'static> = TableId::new(Family::Inet, "podwire");

    fn refusal(errno: Errno, offset: usize) -> Refusal {
        Refusal { errno, message: None, offset: u32::try_from(offset).ok() }
    }

    #[test]
    fn a_missing_chain_type_is_told_from_a_missing_table() {
        let mut batch = Batch::new();
        let hook = Hook::Prerouting;
        batch.add_chain(&Chain::base(TABLE.chain("entry"), ChainKind::Nat, hook, 0));
        let message = &batch.encoded.bytes()[batch.operations[0].range.clone()];
        // The table's name comes first, the type last.
        let (table, chain_type) = (HEADER + NFGENMSG, message.len() - 8);
        let Cause::Unsupported(what) =
            cause(refusal(Errno::NOENT, chain_type), kind::NEW_CHAIN, message)
        else {
            panic!("it isn't told apart");
        };
        assert_eq!(what, "nftables chains of type nat in family inet");
        let absent = cause(refusal(Errno::NOENT, table), kind::NEW_CHAIN, message);
        assert!(matches!(absent, Cause::Kernel(_)));
        let refused = cause(refusal(Errno::EXIST, chain_type), kind::NEW_CHAIN, message);
        assert!(matches!(refused, Cause::Kernel(_)));
    }

    #[test]
    fn a_refusal_without_a_place_stays_as_it_is() {
        let mut requests = Requests::new();
        requests.push(0, Flags::empty(), |body: &mut Body<'_>| body.raw(&[2, 0, 0, 0]));
        let refusal = Refusal { errno: Errno::NOENT, message: None, offset: None };
        let told = cause(refusal.clone(), kind::NEW_RULE, requests.bytes());
        assert_eq!(told, Cause::Kernel(refusal));
    }
}
