//! What goes wrong on a netlink socket, told so that a person can act on it.

use std::fmt;
use std::time::Duration;

use rustix::io::Errno;

/// What a request does and to what, for the text of its error.
///
/// The object is only formatted when the request fails.
#[derive(Clone, Copy)]
pub struct Subject<'a> {
    /// The act, as a gerund: `adding address`.
    pub operation: &'static str,
    /// The thing it is done to: `10.1.0.2/24 on eth0`.
    pub object: &'a dyn fmt::Display,
}

impl<'a> Subject<'a> {
    /// Names an operation and its object.
    pub fn new(operation: &'static str, object: &'a dyn fmt::Display) -> Self {
        Self { operation, object }
    }

    /// The error of this operation for a cause.
    #[must_use]
    pub fn error(&self, cause: Cause) -> Error {
        Error { operation: self.operation, object: self.object.to_string(), cause }
    }
}

impl fmt::Debug for Subject<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.operation, self.object)
    }
}

/// A failed netlink operation.
///
/// Displayed as `adding address 10.1.0.2/24 on eth0: File exists (kernel:
/// address already assigned)`, the part in brackets being the kernel's own
/// extended acknowledgement where it sent one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    operation: &'static str,
    object: String,
    cause: Cause,
}

/// Why a netlink operation failed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The kernel refused the request.
    Kernel(Refusal),
    /// A system call on the socket failed: a fault of the environment.
    Socket {
        /// The system call.
        call: &'static str,
        /// Its error.
        errno: Errno,
    },
    /// No answer within the deadline.
    Deadline(Duration),
    /// The tables kept changing while the kernel listed them, every time.
    Interrupted,
    /// The kernel dropped answers for want of room in the receive buffer, so
    /// whether the request took effect is unknown.
    Overrun,
    /// An answer can't be read.
    Malformed(Malformed),
    /// The request can't be expressed: too long for its message or attribute,
    /// or a value out of its range.
    Unrepresentable(&'static str),
    /// This kernel lacks what was asked; the text names it.
    Unsupported(String),
}

/// The kernel's answer to a request that it refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The error number.
    pub errno: Errno,
    /// The text of the extended acknowledgement (`NLMSGERR_ATTR_MSG`).
    pub message: Option<Box<str>>,
    /// Offset of the offending attribute in the request (`NLMSGERR_ATTR_OFFS`).
    pub offset: Option<u32>,
}

/// A reply that breaks the rules of netlink, and which one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

impl Error {
    /// What was attempted, as a gerund.
    pub fn operation(&self) -> &'static str {
        self.operation
    }

    /// What it was attempted on.
    pub fn object(&self) -> &str {
        &self.object
    }

    /// Why it failed.
    pub fn cause(&self) -> &Cause {
        &self.cause
    }

    /// The error number, of the kernel's answer or of the system call.
    pub fn errno(&self) -> Option<Errno> {
        match &self.cause {
            Cause::Kernel(refusal) => Some(refusal.errno),
            Cause::Socket { errno, .. } => Some(*errno),
            _ => None,
        }
    }

    /// The kernel's own explanation, where it gave one.
    pub fn message(&self) -> Option<&str> {
        match &self.cause {
            Cause::Kernel(refusal) => refusal.message.as_deref(),
            _ => None,
        }
    }

    /// Whether the object isn't there: no such link (`ENODEV`), address
    /// (`EADDRNOTAVAIL`), route (`ESRCH`), qdisc, rule or nftables object
    /// (`ENOENT`).
    pub fn is_not_found(&self) -> bool {
        matches!(
            self.refused(),
            Some(Errno::NOENT | Errno::NODEV | Errno::SRCH | Errno::ADDRNOTAVAIL)
        )
    }

    /// Whether the object is there already (`EEXIST`).
    pub fn is_exists(&self) -> bool {
        self.refused() == Some(Errno::EXIST)
    }

    /// Whether an argument makes no sense to the kernel (`EINVAL`).
    pub fn is_invalid(&self) -> bool {
        self.refused() == Some(Errno::INVAL)
    }

    /// Whether the object is in use (`EBUSY`).
    pub fn is_busy(&self) -> bool {
        self.refused() == Some(Errno::BUSY)
    }

    /// Whether the caller lacks the privilege (`EPERM`, `EACCES`).
    pub fn is_permission(&self) -> bool {
        matches!(self.errno(), Some(Errno::PERM | Errno::ACCESS))
    }

    /// Whether there's no route (`ENETUNREACH`, `EHOSTUNREACH`, or what a
    /// route that refuses packets answers: `EACCES`, `EINVAL`).
    pub(crate) fn is_no_way(&self) -> bool {
        matches!(
            self.refused(),
            Some(Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ACCESS | Errno::INVAL)
        )
    }

    /// Whether this kernel lacks what was asked (`EOPNOTSUPP`,
    /// `EAFNOSUPPORT`, `EPROTONOSUPPORT`).
    pub fn is_unsupported(&self) -> bool {
        matches!(self.cause, Cause::Unsupported(_))
            || matches!(
                self.errno(),
                Some(Errno::OPNOTSUPP | Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT)
            )
    }

    /// Whether trying the same again may help: the deadline passed, a listing
    /// was interrupted, or a table changed underneath (`ERESTART`, `EAGAIN`,
    /// `EBUSY`).
    pub fn is_transient(&self) -> bool {
        match &self.cause {
            Cause::Deadline(_) | Cause::Interrupted => true,
            _ => {
                matches!(self.errno(), Some(Errno::AGAIN | Errno::BUSY | Errno::INTR))
                    || self.errno() == Some(ERESTART)
            }
        }
    }

    /// Whether nftables has changed since the generation that a batch required
    /// (`ERESTART`): look again, and try again.
    pub fn is_restart(&self) -> bool {
        self.refused() == Some(ERESTART)
    }

    fn refused(&self) -> Option<Errno> {
        match &self.cause {
            Cause::Kernel(refusal) => Some(refusal.errno),
            _ => None,
        }
    }
}

/// `ERESTART` (asm-generic/errno.h), which nftables answers when the
/// generation changed between reading and writing.
pub const ERESTART: Errno = Errno::from_raw_os_error(libc::ERESTART);

impl std::error::Error for Error {}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.object.is_empty() {
            write!(formatter, "{}: {}", self.operation, self.cause)
        } else {
            write!(formatter, "{} {}: {}", self.operation, self.object, self.cause)
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Kernel(refusal) => refusal.fmt(formatter),
            Self::Socket { call, errno } => {
                write!(formatter, "{} (netlink socket, {call})", ErrnoText(*errno))
            }
            Self::Deadline(limit) => {
                write!(formatter, "no answer from the kernel within {} s", limit.as_secs_f32())
            }
            Self::Interrupted => formatter
                .write_str("the kernel's tables kept changing while they were listed; try again"),
            Self::Overrun => formatter.write_str(
                "the kernel dropped answers for want of buffer space (net.core.rmem_max), \
                 so the outcome is unknown; look before trying again",
            ),
            Self::Malformed(what) => write!(formatter, "unreadable answer of the kernel: {what}"),
            Self::Unrepresentable(what) => write!(formatter, "can't be expressed: {what}"),
            Self::Unsupported(what) => write!(formatter, "this kernel lacks {what}"),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        ErrnoText(self.errno).fmt(formatter)?;
        match &self.message {
            Some(message) => write!(formatter, " (kernel: {message})"),
            None => Ok(()),
        }
    }
}

/// The words for an error number, without the number that std appends.
struct ErrnoText(Errno);

impl fmt::Display for ErrnoText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = std::io::Error::from_raw_os_error(self.0.raw_os_error()).to_string();
        let words = text.split(" (os error").next().unwrap_or_default();
        formatter.write_str(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_names_the_object_and_the_kernels_reason() {
        let refusal = Refusal {
            errno: Errno::EXIST,
            message: Some("address already assigned".into()),
            offset: None,
        };
        let error =
            Subject::new("adding address", &"10.1.0.2/24 on eth0").error(Cause::Kernel(refusal));
        assert_eq!(
            error.to_string(),
            "adding address 10.1.0.2/24 on eth0: File exists (kernel: address already assigned)"
        );
        assert!(error.is_exists() && !error.is_not_found() && !error.is_transient());
    }

    #[test]
    fn a_restart_is_transient_and_a_socket_error_is_not_an_absence() {
        let restart = Refusal { errno: ERESTART, message: None, offset: None };
        let subject = Subject::new("committing", &"");
        assert!(subject.error(Cause::Kernel(restart)).is_transient());
        let socket = subject.error(Cause::Socket { call: "send", errno: Errno::NOENT });
        assert!(!socket.is_not_found());
        assert_eq!(
            socket.to_string(),
            "committing: No such file or directory (netlink socket, send)"
        );
    }
}
