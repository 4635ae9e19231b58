//! The isolation domain of a request (`CNI_NETNS`), opened once.

use std::path::{Path, PathBuf};

use podwire_spec::error::{Error, ErrorCode};
use podwire_sys::netns::{NetNs, OpenError};

/// What `CNI_NETNS` turned out to be.
#[derive(Debug)]
pub enum Sandbox {
    /// The variable is absent or empty: only DEL, STATUS and GC allow it.
    Unspecified,
    /// An open network namespace.
    Present {
        /// As the runtime gave it; goes into the result's `sandbox`.
        path: PathBuf,
        /// The namespace itself, held open so that it can't be replaced.
        netns: NetNs,
    },
    /// Nothing is at the path.
    Gone {
        /// As the runtime gave it.
        path: PathBuf,
    },
    /// Something is there that is no network namespace: a plain file left by
    /// a broken plugin or an unmounted bind mount. DEL treats it as gone.
    NotANamespace {
        /// As the runtime gave it.
        path: PathBuf,
    },
}

impl Sandbox {
    /// Opens what `CNI_NETNS` names.
    ///
    /// # Errors
    /// Code 5 when the path can't be looked at for another reason than being
    /// absent (permission, I/O).
    pub fn open(path: &str) -> Result<Self, Error> {
        if path.is_empty() {
            return Ok(Self::Unspecified);
        }
        let path = PathBuf::from(path);
        match NetNs::open(&path) {
            Ok(netns) => Ok(Self::Present { path, netns }),
            Err(OpenError::Missing { .. }) => Ok(Self::Gone { path }),
            Err(OpenError::NotANamespace { .. }) => Ok(Self::NotANamespace { path }),
            Err(error) => Err(Error::io(format!("CNI_NETNS \"{}\": {error}", path.display()))),
        }
    }

    /// The path as the runtime gave it; `None` when it gave none.
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::Unspecified => None,
            Self::Present { path, .. } | Self::Gone { path } | Self::NotANamespace { path } => {
                Some(path)
            }
        }
    }

    /// The open namespace, if it is there.
    pub fn netns(&self) -> Option<&NetNs> {
        match self {
            Self::Present { netns, .. } => Some(netns),
            _ => None,
        }
    }

    /// The open namespace, for verbs that can't do without.
    ///
    /// # Errors
    /// Code 8 that says what is at the path instead.
    pub fn require(&self) -> Result<&NetNs, Error> {
        let (what, path) = match self {
            Self::Present { netns, .. } => return Ok(netns),
            Self::Unspecified => {
                return Err(Error::environment("required env variables [CNI_NETNS] missing"));
            }
            Self::Gone { path } => ("does not exist", path),
            Self::NotANamespace { path } => ("is not a network namespace", path),
        };
        Err(Error::new(
            ErrorCode::InvalidNamespace,
            format!("CNI_NETNS \"{}\" {what}", path.display()),
        )
        .with_details("create the namespace before ADD, for example: ip netns add NAME"))
    }
}
