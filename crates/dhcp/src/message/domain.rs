//! Names of domains in options: as text (15) and as DNS writes them (119,
//! RFC 3397), where a name may end in a pointer to an earlier one.

/// The longest name, dots included (RFC 1035, section 2.3.4).
const LONGEST_NAME: usize = 253;

/// A name as text. Zero bytes at the end, as some servers append them, and the
/// dot of the root don't count.
pub(super) fn from_text(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim_end_matches('\0').trim_end_matches('.');
    let fits = !text.is_empty() && text.len() <= LONGEST_NAME;
    (fits && text.split('.').all(|label| is_label(label.as_bytes()))).then(|| text.to_owned())
}

/// The names of a search list, at most `limit`. `None` for one that can't be
/// read as a whole.
pub(super) fn search_list(value: &[u8], limit: usize) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut at = 0;
    while at < value.len() && names.len() < limit {
        let (name, end) = name_at(value, at)?;
        if !name.is_empty() {
            names.push(name);
        }
        at = end;
    }
    Some(names)
}

/// The name that begins at `start`, and where the next one does. A pointer
/// leads back only, so reading always ends.
fn name_at(value: &[u8], start: usize) -> Option<(String, usize)> {
    let mut name = String::new();
    let mut end = None;
    let mut at = start;
    loop {
        let length = *value.get(at)?;
        match length {
            0 => return Some((name, end.unwrap_or(at + 1))),
            1..=63 => {
                let label = value.get(at + 1..at + 1 + usize::from(length))?;
                if !is_label(label) || name.len() + 1 + label.len() > LONGEST_NAME {
                    return None;
                }
                if !name.is_empty() {
                    name.push('.');
                }
                name.push_str(std::str::from_utf8(label).ok()?);
                at += 1 + usize::from(length);
            }
            0xc0..=0xff => {
                let target = usize::from(length & 0x3f) << 8 | usize::from(*value.get(at + 1)?);
                end = end.or(Some(at + 2));
                if target >= at {
                    return None;
                }
                at = target;
            }
            _ => return None,
        }
    }
}

/// Whether a label may go into a resolver's configuration: nothing that would
/// begin a new word or line there.
fn is_label(label: &[u8]) -> bool {
    let fine = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    !label.is_empty() && label.len() <= 63 && label.iter().all(fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_name_or_nothing() {
        assert_eq!(from_text(b"example.org").as_deref(), Some("example.org"));
        assert_eq!(from_text(b"example.org.\0").as_deref(), Some("example.org"));
        for bad in [&b""[..], b".", b"a..b", b"a b", b"a\nnameserver 1.2.3.4", b"\xff", b"a;b"] {
            assert_eq!(from_text(bad), None, "{bad:?}");
        }
        assert_eq!(from_text(&[b'a'; 64]), None);
    }

    #[test]
    fn a_search_list_with_pointers() {
        // The example of RFC 3397, section 2.
        let value = b"\x03eng\x05apple\x03com\x00\x09marketing\xc0\x04";
        assert_eq!(search_list(value, 9).unwrap(), ["eng.apple.com", "marketing.apple.com"]);
        assert_eq!(search_list(value, 1).unwrap(), ["eng.apple.com"]);
        assert!(search_list(b"", 9).unwrap().is_empty());
    }

    #[test]
    fn loops_and_cuts_are_refused() {
        for bad in [
            &b"\xc0\x00"[..],
            b"\x01a\xc0\x00",
            b"\x01a\xc0\x05\x00",
            b"\x03ab",
            b"\x01a",
            b"\xc0",
            b"\x40a\x00",
            b"\x01 \x00",
        ] {
            // A pointer back into its own name repeats until the name is too long.
            assert_eq!(search_list(bad, 9), None, "{bad:?}");
        }
    }
}
