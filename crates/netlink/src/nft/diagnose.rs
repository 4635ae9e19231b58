//! What a refusal of nftables means, where the error number alone misleads.
//!
//! A kernel without the module for an expression or a chain kind answers ENOENT, as for a table
//! that isn't there. The extended acknowledgement points at the attribute that it stumbled
//! over, which tells the two apart.

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

/// What this kernel lacks, if that's what the refusal says.
fn missing(refusal: &Refusal, kind: u16, message: &[u8]) -> Option<String> {
    if refusal.errno != Errno::NOENT {
        return None;
    }
    let offset = usize::try_from(refusal.offset?).ok()?;
    let top = Attributes::new(message.get(HEADER + NFGENMSG..)?);
    let (attribute, at) = find(top, HEADER + NFGENMSG, offset)?;
    match (kind, attribute.kind) {
        // NFTA_CHAIN_TYPE
        (kind::NEW_CHAIN, 7) => Some(format!("chains of type {}", attribute.string())),
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
                name => Some(format!("the nftables expression \"{name}\"")),
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
