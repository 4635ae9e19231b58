//! The name servers of a result as resolv.conf(5) has them.

use std::fmt::Write as _;

use podwire_spec::result::Dns;

/// The file's lines. White space within a value is dropped, so that none can
/// begin a line of its own.
pub(super) fn lines(dns: &Dns) -> String {
    let word = |text: &str| text.replace(char::is_whitespace, "");
    let words =
        |values: &[String]| values.iter().map(|value| word(value)).collect::<Vec<_>>().join(" ");
    let mut text = String::new();
    // Writing to a String can't fail.
    for server in &dns.nameservers {
        let _ = writeln!(text, "nameserver {}", word(server));
    }
    if let Some(domain) = &dns.domain {
        let _ = writeln!(text, "domain {}", word(domain));
    }
    if !dns.search.is_empty() {
        let _ = writeln!(text, "search {}", words(&dns.search));
    }
    if !dns.options.is_empty() {
        let _ = writeln!(text, "options {}", words(&dns.options));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_has_its_line_and_no_value_makes_another() {
        let dns = Dns {
            nameservers: vec!["10.0.0.10".into(), "fd00::10\nnameserver 6.6.6.6".into()],
            domain: Some("pods.example".into()),
            search: vec!["a.example".into(), "b.example".into()],
            options: vec!["ndots:5".into()],
        };
        assert_eq!(
            lines(&dns),
            "nameserver 10.0.0.10\nnameserver fd00::10nameserver6.6.6.6\ndomain pods.example\n\
             search a.example b.example\noptions ndots:5\n"
        );
        assert_eq!(lines(&Dns::default()), "");
    }
}
