//! Userdata: bytes that the kernel keeps with an object for whoever made it.
//!
//! nft writes type-length-value entries there, one byte of type, one of length, and shows those
//! of type 0 as comments (libnftnl's `udata.h`). Entries of types that it doesn't know are left
//! alone, so own entries can stand beside a comment.

use crate::message::Body;

/// The most that is kept, in bytes.
///
/// `NFT_USERDATA_MAXLEN` is 256, but an element's length is one byte in the kernel: 255 is
/// refused, and 256 is accepted and lost.
pub const USERDATA_MAX: usize = 254;
/// The longest comment that can be written, in bytes: its entry's two bytes and its closing NUL
/// leave so much. nft itself writes no more than 127, but lists all of it.
pub const COMMENT_MAX: usize = USERDATA_MAX - 3;

/// Entry type of a comment on a table, chain, rule or element.
const COMMENT: u8 = 0;
/// Entry types of a set's userdata (`enum nftnl_udata_set_types`).
const SET_KEY_BYTE_ORDER: u8 = 0;
const SET_DATA_BYTE_ORDER: u8 = 1;
const SET_COMMENT: u8 = 7;

/// Bytes kept with an object, mostly type-length-value entries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct UserData {
    bytes: Vec<u8>,
    fault: Option<&'static str>,
}

impl UserData {
    /// Nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Bytes as they are.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self { bytes: bytes.into(), fault: None }
    }

    /// A comment, as nft writes it for tables, chains, rules and elements.
    pub fn from_comment(comment: &str) -> Self {
        Self::new().with_comment(comment)
    }

    /// Appends a comment. One longer than [`COMMENT_MAX`] or with a NUL in it makes the commit
    /// of what carries it fail, with that as the reason.
    #[must_use]
    pub fn with_comment(self, comment: &str) -> Self {
        self.with_text(COMMENT, comment)
    }

    /// Appends an entry of any type; at most 252 bytes. Types from 128 up are ours to choose.
    #[must_use]
    pub fn with_entry(mut self, kind: u8, value: &[u8]) -> Self {
        match u8::try_from(value.len()) {
            Ok(length) => {
                self.bytes.extend_from_slice(&[kind, length]);
                self.bytes.extend_from_slice(value);
            }
            Err(_) => self.fault = Some("an entry of userdata longer than 252 bytes"),
        }
        self
    }

    fn with_text(mut self, kind: u8, text: &str) -> Self {
        if text.len() > COMMENT_MAX {
            self.fault = Some("a comment longer than 251 bytes");
            return self;
        }
        if text.as_bytes().contains(&0) {
            self.fault = Some("a comment with a NUL in it");
            return self;
        }
        let mut value = Vec::with_capacity(text.len() + 1);
        value.extend_from_slice(text.as_bytes());
        value.push(0);
        self.with_entry(kind, &value)
    }

    /// What a set's userdata must say for nft to print its elements by their types.
    pub(super) fn for_set(key_order: u32, data_order: Option<u32>, comment: Option<&str>) -> Self {
        let mut data = Self::new().with_entry(SET_KEY_BYTE_ORDER, &key_order.to_ne_bytes());
        if let Some(order) = data_order {
            data = data.with_entry(SET_DATA_BYTE_ORDER, &order.to_ne_bytes());
        }
        match comment {
            Some(comment) => data.with_text(SET_COMMENT, comment),
            None => data,
        }
    }

    /// All bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// True when there is nothing.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty() && self.fault.is_none()
    }

    /// The comment of a table, chain, rule or element; bytes that aren't UTF-8 are replaced.
    pub fn comment(&self) -> Option<String> {
        self.text(COMMENT)
    }

    pub(super) fn set_comment(&self) -> Option<String> {
        self.text(SET_COMMENT)
    }

    fn text(&self, kind: u8) -> Option<String> {
        let value = self.entry(kind)?;
        let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
        Some(String::from_utf8_lossy(value.get(..end)?).into_owned())
    }

    /// The value of the first entry of a type.
    pub fn entry(&self, kind: u8) -> Option<&[u8]> {
        self.entries().find(|entry| entry.0 == kind).map(|entry| entry.1)
    }

    /// The entries in order, up to the first that reaches beyond the end.
    pub fn entries(&self) -> impl Iterator<Item = (u8, &[u8])> {
        let mut rest = self.bytes.as_slice();
        std::iter::from_fn(move || {
            let (&[kind, length], behind) = rest.split_first_chunk::<2>()?;
            let (value, behind) = behind.split_at_checked(usize::from(length))?;
            rest = behind;
            Some((kind, value))
        })
    }

    /// Writes the attribute, unless there is nothing to write.
    pub(super) fn encode(&self, body: &mut Body<'_>, kind: u16) {
        if let Some(fault) = self.fault {
            body.fail(fault);
        } else if self.bytes.len() > USERDATA_MAX {
            body.fail("userdata longer than 254 bytes");
        } else if !self.bytes.is_empty() {
            body.attribute(kind, &self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comment_is_written_as_nft_writes_it() {
        assert_eq!(UserData::from_comment("tc").as_bytes(), b"\x00\x03tc\x00");
        assert_eq!(UserData::from_comment("tc").comment().as_deref(), Some("tc"));
    }

    #[test]
    fn own_entries_stand_beside_a_comment() {
        let data = UserData::from_comment("shown").with_entry(200, &[1, 2]);
        assert_eq!(data.comment().as_deref(), Some("shown"));
        assert_eq!(data.entry(200), Some([1, 2].as_slice()));
        assert_eq!(data.entry(201), None);
    }

    #[test]
    fn set_userdata_is_that_of_nft() {
        let data = UserData::for_set(2, Some(0), Some("c"));
        assert_eq!(
            data.as_bytes(),
            b"\x00\x04\x02\x00\x00\x00\x01\x04\x00\x00\x00\x00\x07\x02c\x00"
        );
        assert_eq!(data.set_comment().as_deref(), Some("c"));
    }

    #[test]
    fn entries_that_reach_beyond_the_end_are_left_out() {
        let data = UserData::from_bytes([0, 2, b'a', 0, 1, 200, 3]);
        assert_eq!(data.entries().count(), 1);
        assert_eq!(UserData::from_bytes([7]).entries().count(), 0);
        assert_eq!(UserData::from_bytes([0, 0]).comment().as_deref(), Some(""));
    }
}
