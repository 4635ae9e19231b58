//! The xtables extensions that iptables-nft writes into rules, as far as rules of ours in
//! iptables' chains need them.
//!
//! iptables calls a whole table incompatible when it finds an expression there that it doesn't
//! write itself, so in its chains connection state is matched by the `conntrack` extension and
//! not by a `ct` expression.

use super::{Expression, Rule};

/// `sizeof(struct xt_comment_info)` (`linux/netfilter/xt_comment.h`).
const COMMENT_LENGTH: usize = 256;
/// `sizeof(struct xt_conntrack_mtinfo3)`, rounded up to the alignment of xtables.
const CONNTRACK_LENGTH: usize = 168;
/// Offsets in `struct xt_conntrack_mtinfo3` (`linux/netfilter/xt_conntrack.h`).
const CONNTRACK_MATCH_FLAGS: usize = 146;
const CONNTRACK_STATE_MASK: usize = 150;
/// `XT_CONNTRACK_STATE`: the state is what's matched.
const MATCH_STATE: u16 = 1;

/// Bits of the state that the `conntrack` extension matches (`XT_CONNTRACK_STATE_*`).
pub mod state {
    /// `INVALID`
    pub const INVALID: u16 = 1;
    /// `ESTABLISHED`
    pub const ESTABLISHED: u16 = 2;
    /// `RELATED`
    pub const RELATED: u16 = 4;
    /// `NEW`
    pub const NEW: u16 = 8;
}

/// `-m conntrack --ctstate …` (revision 3).
pub fn conntrack(states: u16) -> Expression {
    let mut info = vec![0; CONNTRACK_LENGTH];
    put(&mut info, CONNTRACK_MATCH_FLAGS, MATCH_STATE);
    put(&mut info, CONNTRACK_STATE_MASK, states);
    Expression::XtMatch { name: "conntrack".to_owned(), revision: 3, info }
}

/// `-m comment --comment …`. A comment longer than 255 bytes is cut, at a character.
pub fn comment(text: &str) -> Expression {
    let mut end = text.len().min(COMMENT_LENGTH - 1);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut info = text.as_bytes().get(..end).unwrap_or_default().to_vec();
    info.resize(COMMENT_LENGTH, 0);
    Expression::XtMatch { name: "comment".to_owned(), revision: 0, info }
}

/// The text of a `comment` match.
pub(super) fn comment_of(expression: &Expression) -> Option<String> {
    match expression {
        Expression::XtMatch { name, info, .. } if name == "comment" => {
            let end = info.iter().position(|byte| *byte == 0).unwrap_or(info.len());
            Some(String::from_utf8_lossy(info.get(..end)?).into_owned())
        }
        _ => None,
    }
}

fn put(info: &mut [u8], offset: usize, value: u16) {
    if let Some(slot) = info.get_mut(offset..offset + 2) {
        slot.copy_from_slice(&value.to_ne_bytes());
    }
}

impl Rule {
    /// Only connections in one of these states ([`state`]), in the form of iptables.
    #[must_use]
    pub fn xt_conntrack(self, states: u16) -> Self {
        self.expression(conntrack(states))
    }

    /// A comment in the form of iptables.
    #[must_use]
    pub fn xt_comment(self, text: &str) -> Self {
        self.expression(comment(text))
    }
}
