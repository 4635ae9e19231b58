//! Numbers and names of options (RFC 2132 and those after it).

/// Padding; no option.
pub const PAD: u8 = 0;
/// The subnet's mask.
pub const SUBNET_MASK: u8 = 1;
/// Routers, best first.
pub const ROUTERS: u8 = 3;
/// Name servers.
pub const NAME_SERVERS: u8 = 6;
/// The client's name.
pub const HOST_NAME: u8 = 12;
/// The client's domain.
pub const DOMAIN_NAME: u8 = 15;
/// The interface's MTU in bytes.
pub const INTERFACE_MTU: u8 = 26;
/// Routes by address class.
pub const STATIC_ROUTES: u8 = 33;
/// The address that a client asks for.
pub const REQUESTED_ADDRESS: u8 = 50;
/// How long the lease lasts, in seconds.
pub const LEASE_TIME: u8 = 51;
/// Which fields hold options too.
pub const OVERLOAD: u8 = 52;
/// What the message is for.
pub const MESSAGE_TYPE: u8 = 53;
/// The server, by an address of its own.
pub const SERVER_IDENTIFIER: u8 = 54;
/// The options that a client asks for.
pub const PARAMETER_LIST: u8 = 55;
/// Why a server refuses, as text.
pub const MESSAGE_TEXT: u8 = 56;
/// The longest message that a client takes, in bytes.
pub const LONGEST_MESSAGE: u8 = 57;
/// When to renew (T1), in seconds.
pub const RENEWAL_TIME: u8 = 58;
/// When to ask any server (T2), in seconds.
pub const REBINDING_TIME: u8 = 59;
/// The kind of client, as the vendor names it.
pub const VENDOR_CLASS: u8 = 60;
/// Who the client is.
pub const CLIENT_IDENTIFIER: u8 = 61;
/// The kind of user.
pub const USER_CLASS: u8 = 77;
/// Domains to search (RFC 3397).
pub const DOMAIN_SEARCH: u8 = 119;
/// Routes (RFC 3442).
pub const CLASSLESS_ROUTES: u8 = 121;
/// The end of the options; no option.
pub const END: u8 = 255;

/// Names as dhclient and dnsmasq write them; the first six are those that the
/// Go plugin knows.
const NAMES: &[(&str, u8)] = &[
    ("dhcp-client-identifier", CLIENT_IDENTIFIER),
    ("subnet-mask", SUBNET_MASK),
    ("routers", ROUTERS),
    ("host-name", HOST_NAME),
    ("user-class", USER_CLASS),
    ("vendor-class-identifier", VENDOR_CLASS),
    ("time-offset", 2),
    ("domain-name-servers", NAME_SERVERS),
    ("domain-name", DOMAIN_NAME),
    ("root-path", 17),
    ("interface-mtu", INTERFACE_MTU),
    ("broadcast-address", 28),
    ("static-routes", STATIC_ROUTES),
    ("nis-domain", 40),
    ("nis-servers", 41),
    ("ntp-servers", 42),
    ("netbios-name-servers", 44),
    ("netbios-dd-server", 45),
    ("netbios-node-type", 46),
    ("netbios-scope", 47),
    ("dhcp-lease-time", LEASE_TIME),
    ("dhcp-renewal-time", RENEWAL_TIME),
    ("dhcp-rebinding-time", REBINDING_TIME),
    ("nisplus-domain", 64),
    ("nisplus-servers", 65),
    ("tftp-server-name", 66),
    ("bootfile-name", 67),
    ("smtp-server", 69),
    ("fqdn", 81),
    ("domain-search", DOMAIN_SEARCH),
    ("classless-static-routes", CLASSLESS_ROUTES),
    ("rfc3442-classless-static-routes", CLASSLESS_ROUTES),
    ("captive-portal", 114),
];

/// The option of a name, or of a number from 0 to 255 as text.
pub fn parse(text: &str) -> Option<u8> {
    let named = NAMES.iter().find(|(name, _)| *name == text);
    named.map(|(_, code)| *code).or_else(|| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok()).flatten()
    })
}

/// The names that [`parse`] knows, for error texts.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMES.iter().map(|(name, _)| *name)
}

/// Options that make the protocol work and are set by it alone.
pub fn is_protocol(code: u8) -> bool {
    matches!(
        code,
        PAD | REQUESTED_ADDRESS
            | OVERLOAD
            | MESSAGE_TYPE
            | SERVER_IDENTIFIER
            | PARAMETER_LIST
            | LONGEST_MESSAGE
            | END
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_options() {
        assert_eq!(parse("routers"), Some(3));
        assert_eq!(parse("interface-mtu"), Some(26));
        assert_eq!(parse("0"), Some(0));
        assert_eq!(parse("255"), Some(255));
        for text in ["", "256", "-1", "+3", "Routers", "3 "] {
            assert_eq!(parse(text), None, "{text:?}");
        }
        assert!(names().count() > 30);
        assert!(is_protocol(53) && !is_protocol(CLIENT_IDENTIFIER));
    }
}
