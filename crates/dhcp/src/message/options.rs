//! The options of a message, long and overloaded ones put together.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use super::{Malformed, code, domain, routes};

/// Options by their code. A value may be longer than the 255 bytes that one
/// piece holds (RFC 3396).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    values: BTreeMap<u8, Vec<u8>>,
}

impl Options {
    /// Reads the option field and, where an option says so, the fields for
    /// file and server name (RFC 2132, section 9.3; the order is RFC 3396's).
    pub(super) fn decode(area: &[u8], file: &[u8], name: &[u8]) -> Result<Self, Malformed> {
        let mut options = Self::default();
        options.read(area)?;
        match options.remove(code::OVERLOAD).as_deref() {
            None => {}
            Some([1]) => options.read(file)?,
            Some([2]) => options.read(name)?,
            Some([3]) => {
                options.read(file)?;
                options.read(name)?;
            }
            Some(_) => return Err(Malformed("an option overload that isn't 1, 2 or 3")),
        }
        // Only the option field may say so.
        options.remove(code::OVERLOAD);
        Ok(options)
    }

    fn read(&mut self, mut area: &[u8]) -> Result<(), Malformed> {
        while let [kind, rest @ ..] = area {
            match *kind {
                code::PAD => area = rest,
                code::END => break,
                kind => {
                    let cut = Malformed("an option that is cut off");
                    let (length, rest) = rest.split_first().ok_or(cut)?;
                    let (value, rest) = rest.split_at_checked(usize::from(*length)).ok_or(cut)?;
                    self.values.entry(kind).or_default().extend(value);
                    area = rest;
                }
            }
        }
        Ok(())
    }

    pub(super) fn encode(&self, bytes: &mut Vec<u8>) {
        for (kind, value) in &self.values {
            if value.is_empty() {
                bytes.extend([*kind, 0]);
            }
            for piece in value.chunks(255) {
                bytes.push(*kind);
                bytes.push(u8::try_from(piece.len()).unwrap_or(u8::MAX));
                bytes.extend(piece);
            }
        }
        bytes.push(code::END);
    }

    /// Sets an option. Padding and the end mark are no options and not set.
    pub fn set(&mut self, kind: u8, value: Vec<u8>) {
        if kind != code::PAD && kind != code::END {
            self.values.insert(kind, value);
        }
    }

    /// Takes an option out.
    pub fn remove(&mut self, kind: u8) -> Option<Vec<u8>> {
        self.values.remove(&kind)
    }

    /// An option's value.
    pub fn get(&self, kind: u8) -> Option<&[u8]> {
        self.values.get(&kind).map(Vec::as_slice)
    }

    /// An option that is one number of 4 bytes.
    pub fn number(&self, kind: u8) -> Option<u32> {
        self.get(kind)?.try_into().ok().map(u32::from_be_bytes)
    }

    /// An option that is one number of 2 bytes.
    pub fn short_number(&self, kind: u8) -> Option<u16> {
        self.get(kind)?.try_into().ok().map(u16::from_be_bytes)
    }

    /// An option that is one address.
    pub fn address(&self, kind: u8) -> Option<Ipv4Addr> {
        <[u8; 4]>::try_from(self.get(kind)?).ok().map(Ipv4Addr::from)
    }

    /// An option that is a list of addresses, at most `limit` of them; what
    /// is cut off doesn't count.
    pub fn addresses(&self, kind: u8, limit: usize) -> Vec<Ipv4Addr> {
        let value = self.get(kind).unwrap_or_default();
        let whole = value.chunks_exact(4).filter_map(|four| <[u8; 4]>::try_from(four).ok());
        whole.map(Ipv4Addr::from).take(limit).collect()
    }

    /// An option that is one domain's name as text; none when it isn't one.
    pub fn domain(&self, kind: u8) -> Option<String> {
        domain::from_text(self.get(kind)?)
    }

    /// An option that is a list of domains (RFC 3397), at most `limit` of
    /// them; empty when it can't be read.
    pub fn domains(&self, kind: u8, limit: usize) -> Vec<String> {
        domain::search_list(self.get(kind).unwrap_or_default(), limit).unwrap_or_default()
    }

    /// Routes of option 121 (RFC 3442), at most `limit`; none when the option
    /// is absent or malformed.
    pub fn classless_routes(&self, limit: usize) -> Option<Vec<routes::Route>> {
        routes::classless(self.get(code::CLASSLESS_ROUTES)?, limit)
    }

    /// Routes of option 33, at most `limit`.
    pub fn static_routes(&self, limit: usize) -> Vec<routes::Route> {
        routes::classful(self.get(code::STATIC_ROUTES).unwrap_or_default(), limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_options_are_cut_and_joined() {
        let mut options = Options::default();
        let long: Vec<u8> = (0..=255).chain(0..100).collect();
        options.set(61, long.clone());
        options.set(80, Vec::new());
        let mut bytes = Vec::new();
        options.encode(&mut bytes);
        assert_eq!(bytes.len(), 2 + 255 + 2 + 101 + 2 + 1);
        assert_eq!(Options::decode(&bytes, &[], &[]), Ok(options));
    }

    #[test]
    fn overloaded_fields_are_read_in_order() {
        let file = [6, 4, 10, 0, 0, 1, 255, 9];
        let name = [6, 4, 10, 0, 0, 2, 0, 0];
        for (overload, count) in [(1, 1), (2, 1), (3, 2)] {
            let options = Options::decode(&[52, 1, overload, 255], &file, &name).unwrap();
            assert_eq!(options.addresses(6, 9).len(), count, "{overload}");
            assert_eq!(options.get(52), None);
        }
        let options = Options::decode(&[52, 1, 3, 255], &file, &name).unwrap();
        assert_eq!(options.addresses(6, 9)[0], Ipv4Addr::new(10, 0, 0, 1));
        assert!(Options::decode(&[52, 1, 4, 255], &file, &name).is_err());
    }

    #[test]
    fn values_of_another_length_are_absent() {
        let mut options = Options::default();
        options.set(51, vec![0, 0, 0, 9]);
        options.set(26, vec![5]);
        options.set(6, vec![10, 0, 0, 1, 10, 0]);
        options.set(0, vec![1]);
        options.set(255, vec![1]);
        assert_eq!(options.number(51), Some(9));
        assert_eq!(options.short_number(26), None);
        assert_eq!(options.address(51), Some(Ipv4Addr::new(0, 0, 0, 9)));
        assert_eq!(options.addresses(6, 9), [Ipv4Addr::new(10, 0, 0, 1)]);
        assert_eq!(options.addresses(6, 0).len(), 0);
        assert_eq!((options.get(0), options.get(255)), (None, None));
    }

    #[test]
    fn cut_options_are_refused() {
        for area in [&[6][..], &[6, 4, 1], &[6, 255]] {
            assert!(Options::decode(area, &[], &[]).is_err());
        }
        assert!(Options::decode(&[0, 0, 6, 0], &[], &[]).is_ok());
    }
}
