//! Expressions as attributes (`NFTA_EXPR_*` and each expression's own, `linux/netfilter/nf_tables.h`).

use super::expression::{Expression, LookupTarget, RegisterRange};
use super::{Data, Register, Verdict};
use crate::message::Body;

/// `NFTA_LIST_ELEM`
pub(super) const LIST_ELEMENT: u16 = 1;
const EXPRESSION_NAME: u16 = 1;
const EXPRESSION_DATA: u16 = 2;
const DATA_VALUE: u16 = 1;
const DATA_VERDICT: u16 = 2;
const VERDICT_CODE: u16 = 1;
const VERDICT_CHAIN: u16 = 2;
/// `NFT_REG_VERDICT`
const VERDICT_REGISTER: u32 = 0;
/// `NFT_LOOKUP_F_INV`
const LOOKUP_INVERTED: u32 = 1;

/// Writes one expression as an element of a rule's list.
pub(super) fn expression(body: &mut Body<'_>, expression: &Expression) {
    body.nest(LIST_ELEMENT, |body| {
        body.string(EXPRESSION_NAME, expression.name());
        body.nest(EXPRESSION_DATA, |body| attributes(body, expression));
    });
}

/// Writes a value as a data attribute (`NFTA_DATA_VALUE` in a nest).
pub(super) fn data(body: &mut Body<'_>, kind: u16, value: &Data) {
    body.nest(kind, |body| body.attribute(DATA_VALUE, value.as_bytes()));
}

/// Writes a verdict as a data attribute (`NFTA_DATA_VERDICT` in a nest).
pub(super) fn verdict(body: &mut Body<'_>, kind: u16, verdict: &Verdict) {
    body.nest(kind, |body| {
        body.nest(DATA_VERDICT, |body| {
            body.attribute(VERDICT_CODE, &verdict.code().to_be_bytes());
            if let Some(chain) = verdict.chain() {
                body.string(VERDICT_CHAIN, chain);
            }
        });
    });
}

fn register(body: &mut Body<'_>, kind: u16, register: Register) {
    body.u32_be(kind, register.number());
}

fn range(body: &mut Body<'_>, least: u16, greatest: u16, range: Option<RegisterRange>) {
    if let Some(range) = range {
        register(body, least, range.least);
        // Left out for a single value, as nft does: older kernels want it so for some kinds.
        if range.greatest != range.least {
            register(body, greatest, range.greatest);
        }
    }
}

fn attributes(body: &mut Body<'_>, expression: &Expression) {
    match expression {
        Expression::Meta { key, destination } => {
            register(body, 1, *destination);
            body.u32_be(2, key.number());
        }
        Expression::MetaSet { key, source } => {
            body.u32_be(2, key.number());
            register(body, 3, *source);
        }
        Expression::Payload { base, offset, length, destination } => {
            register(body, 1, *destination);
            body.u32_be(2, *base as u32);
            body.u32_be(3, *offset);
            body.u32_be(4, *length);
        }
        Expression::Compare { comparison, source, value } => {
            register(body, 1, *source);
            body.u32_be(2, *comparison as u32);
            data(body, 3, value);
        }
        Expression::Range { outside, source, least, greatest } => {
            register(body, 1, *source);
            body.u32_be(2, u32::from(*outside));
            data(body, 3, least);
            data(body, 4, greatest);
        }
        Expression::Bitwise { source, destination, mask, xor } => {
            register(body, 1, *source);
            register(body, 2, *destination);
            match u32::try_from(mask.as_bytes().len()) {
                Ok(length) => body.u32_be(3, length),
                Err(_) => body.fail("a mask longer than the registers"),
            }
            data(body, 4, mask);
            data(body, 5, xor);
        }
        Expression::Lookup { set, source, target } => {
            body.string(1, set);
            register(body, 2, *source);
            match target {
                LookupTarget::Present => {}
                LookupTarget::Absent => body.u32_be(5, LOOKUP_INVERTED),
                LookupTarget::Value(destination) => register(body, 3, *destination),
                LookupTarget::Verdict => body.u32_be(3, VERDICT_REGISTER),
            }
        }
        Expression::Immediate { destination, value } => {
            register(body, 1, *destination);
            data(body, 2, value);
        }
        Expression::Verdict(decision) => {
            body.u32_be(1, VERDICT_REGISTER);
            verdict(body, 2, decision);
        }
        Expression::Fib { result, flags, destination } => {
            register(body, 1, *destination);
            body.u32_be(2, *result as u32);
            body.u32_be(3, flags.bits());
        }
        Expression::Conntrack { key, direction, destination } => {
            register(body, 1, *destination);
            body.u32_be(2, key.number());
            if let Some(direction) = direction {
                body.u8(3, *direction);
            }
        }
        Expression::ConntrackSet { key, source } => {
            body.u32_be(2, key.number());
            register(body, 4, *source);
        }
        Expression::Counter { packets, bytes } => {
            body.u64_be(1, *bytes);
            body.u64_be(2, *packets);
        }
        Expression::Nat { kind, version, address, port, flags } => {
            body.u32_be(1, *kind as u32);
            body.u32_be(2, u32::from(*version as u8));
            range(body, 3, 4, *address);
            range(body, 5, 6, *port);
            if !flags.is_empty() {
                body.u32_be(7, flags.bits());
            }
        }
        Expression::Masquerade { flags, port } => {
            if !flags.is_empty() {
                body.u32_be(1, flags.bits());
            }
            range(body, 2, 3, *port);
        }
        Expression::Redirect { port, flags } => {
            range(body, 1, 2, *port);
            if !flags.is_empty() {
                body.u32_be(3, flags.bits());
            }
        }
        Expression::Reject { kind, code } => {
            body.u32_be(1, *kind);
            body.u8(2, *code);
        }
        Expression::XtMatch { name, revision, info }
        | Expression::XtTarget { name, revision, info } => {
            body.string(1, name);
            body.u32_be(2, *revision);
            body.attribute(3, info);
        }
        Expression::Unknown { attributes, .. } => body.raw(attributes),
    }
}
