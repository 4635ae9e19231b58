//! Making two runs comparable: what is random by design gets one name.

/// The text with hardware addresses and the names of host ends and ifbs replaced.
pub fn normalised(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let (mut at, mut copied) = (0, 0);
    while at < bytes.len() {
        let Some((name, length)) = random(&bytes[at..]) else {
            at += 1;
            continue;
        };
        // Both ends are at letters of one byte.
        out.push_str(&text[copied..at]);
        out.push_str(name);
        at += length;
        copied = at;
    }
    out.push_str(&text[copied..]);
    out
}

/// What is random at the beginning of a text: the name for it, and its length. Looks at
/// few bytes of most places: it is called for every byte of thousands of facts.
fn random(bytes: &[u8]) -> Option<(&'static str, usize)> {
    if bytes.get(2) == Some(&b':')
        && let Some(length) = mac_length(bytes)
    {
        return Some(("MAC", length));
    }
    match bytes.first() {
        Some(b'v') => host_end_length(bytes).map(|length| ("VETH", length)),
        Some(b'b') => ifb_length(bytes).map(|length| ("IFB", length)),
        _ => None,
    }
}

/// `02:00:5e:10:00:01`, not part of something longer (an IPv6 address).
fn mac_length(bytes: &[u8]) -> Option<usize> {
    const LENGTH: usize = 17;
    let candidate = bytes.get(..LENGTH)?;
    let is_mac = candidate
        .iter()
        .enumerate()
        .all(|(index, byte)| if index % 3 == 2 { *byte == b':' } else { byte.is_ascii_hexdigit() });
    let ends = bytes.get(LENGTH).is_none_or(|next| *next != b':' && !next.is_ascii_hexdigit());
    (is_mac && ends).then_some(LENGTH)
}

/// `veth` and eight hexadecimal digits.
fn host_end_length(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.strip_prefix(b"veth")?.get(..8)?;
    digits.iter().all(u8::is_ascii_hexdigit).then_some(12)
}

/// `bwp` and eight hexadecimal digits, or twelve as the Go plugin has it.
fn ifb_length(bytes: &[u8]) -> Option<usize> {
    let digits = bytes.strip_prefix(b"bwp")?.iter().take_while(|byte| byte.is_ascii_hexdigit());
    match digits.count() {
        count @ (8 | 12) => Some(3 + count),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::normalised;

    #[test]
    fn what_is_random_gets_one_name() {
        let text = r#"{"mac":"aa:bb:cc:00:11:22","name":"veth0a1b2c3d","ip":"fd00::12"}"#;
        assert_eq!(normalised(text), r#"{"mac":"MAC","name":"VETH","ip":"fd00::12"}"#);
        assert_eq!(normalised("bwp7be53730afe4 bwp01234567 bwp-user"), "IFB IFB bwp-user");
        assert_eq!(normalised("vethx ä fe80:1:2:3:4:5"), "vethx ä fe80:1:2:3:4:5");
    }
}
