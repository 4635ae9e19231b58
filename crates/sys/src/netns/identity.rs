//! A namespace's name that is never given twice, also over boots.

use std::fmt;
use std::str::FromStr;

use super::NetNs;
use crate::boot::{BootId, boot_id};

/// Which network namespace of which boot: the kernel counts them from each boot on.
///
/// Written as `BOOT:COOKIE`, to be compared later with what is at a path then.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    boot: BootId,
    cookie: u64,
}

impl Identity {
    /// The boot in which the namespace lived.
    pub fn boot(&self) -> &BootId {
        &self.boot
    }
}

impl NetNs {
    /// What tells it from every other namespace, earlier and later ones too. `None`
    /// where the kernel has no cookies, or can't tell which boot this is.
    pub fn identity(&self) -> Option<Identity> {
        self.identity_in(&boot_id().ok()?)
    }

    /// The same for who knows the boot already, and asks of many namespaces.
    pub fn identity_in(&self, boot: &BootId) -> Option<Identity> {
        Some(Identity { cookie: self.cookie()?, boot: boot.clone() })
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.boot, self.cookie)
    }
}

/// The text is no identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("it is not the boot id and the cookie of a network namespace")]
pub struct NoIdentity;

impl FromStr for Identity {
    type Err = NoIdentity;

    fn from_str(text: &str) -> Result<Self, NoIdentity> {
        let (boot, cookie) = text.split_once(':').ok_or(NoIdentity)?;
        let boot = BootId::parse(boot).ok_or(NoIdentity)?;
        let is_plain = cookie.bytes().all(|byte| byte.is_ascii_digit());
        let cookie = cookie.parse().ok().filter(|_| is_plain).ok_or(NoIdentity)?;
        Ok(Self { boot, cookie })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let own = NetNs::current().unwrap().identity().unwrap();
        assert_eq!(own.to_string().parse(), Ok(own.clone()));
        assert_eq!(own.boot(), &boot_id().unwrap());
        assert_eq!(NetNs::current().unwrap().identity(), Some(own));
    }

    #[test]
    fn only_a_boot_and_a_number_are_one() {
        let boot = "00000000-1111-2222-3333-444444444444";
        assert!(format!("{boot}:7").parse::<Identity>().is_ok());
        for bad in ["", boot, &format!("{boot}:"), &format!("{boot}:+7"), &format!("{boot}:x")] {
            assert_eq!(bad.parse::<Identity>(), Err(NoIdentity), "{bad}");
        }
        assert!("x:7".parse::<Identity>().is_err());
    }
}
