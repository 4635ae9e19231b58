//! `resolvConf`: name resolution copied from a file in the form of
//! resolv.conf(5).

use std::path::Path;

use podwire_spec::Error;
use podwire_spec::result::Dns;

/// Larger files are refused: 64 KiB holds thousands of lines.
const LIMIT: usize = 64 << 10;

/// Reads the file.
///
/// # Errors
/// Code 7 naming the file: the configuration asks for it.
pub(super) fn read(path: &Path) -> Result<Dns, Error> {
    let bytes = podwire_sys::file::read_bounded(path, LIMIT).map_err(|error| {
        Error::config(format!("ipam.resolvConf: {error}"))
            .with_details("correct the path, or leave the key out and set dns")
    })?;
    Ok(parse(&String::from_utf8_lossy(&bytes)))
}

/// `nameserver`, `domain`, `search` and `options`; lines that begin with `#`
/// or `;` are comments, others are passed over.
pub(super) fn parse(text: &str) -> Dns {
    let mut dns = Dns::default();
    for line in text.lines() {
        let mut words = line.split_ascii_whitespace();
        let Some(key) = words.next().filter(|_| !line.starts_with(['#', ';'])) else { continue };
        let words = words.map(str::to_owned);
        match key {
            "nameserver" => dns.nameservers.extend(words.take(1)),
            "domain" => dns.domain = words.take(1).next().or(dns.domain),
            "search" => dns.search.extend(words),
            "options" => dns.options.extend(words),
            _ => {}
        }
    }
    dns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_keys_are_read() {
        let dns = parse(
            "# comment\n;other\n\nnameserver 192.0.2.1\r\nnameserver 192.0.2.2 extra\nnameserver\n\
             domain example.org\nsearch a.example\tb.example\noptions ndots:5 rotate\nsortlist x\n",
        );
        assert_eq!(dns.nameservers, ["192.0.2.1", "192.0.2.2"]);
        assert_eq!(dns.domain.as_deref(), Some("example.org"));
        assert_eq!(dns.search, ["a.example", "b.example"]);
        assert_eq!(dns.options, ["ndots:5", "rotate"]);
        assert!(parse("").is_empty());
    }

    #[test]
    fn an_unreadable_file_is_named() {
        let error = read(Path::new("/none/resolv.conf")).unwrap_err();
        assert_eq!(error.code.number(), 7);
        assert!(error.msg.contains("ipam.resolvConf: reading /none/resolv.conf"), "{error}");
    }
}
