//! Why a command failed.

use std::path::PathBuf;

use podwire_runtime::RuntimeError;
use podwire_spec::error::{Error, ErrorCode};

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The runtime, a plugin, or a value that the protocol doesn't allow.
    Runtime(RuntimeError),
    /// Several things went wrong, and none of them kept the others from being
    /// done.
    Several(Vec<RuntimeError>),
    /// The system refused something that is the command's own affair.
    System {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// Called wrongly, in a way that the parser of arguments can't tell.
    Usage(Error),
}

impl Failure {
    /// The first error as a CNI error object.
    pub(crate) fn to_cni_error(&self) -> Error {
        match self {
            Self::Runtime(error) => error.to_cni_error(),
            Self::Several(errors) => {
                let code = errors.first().map_or(ErrorCode::Internal, RuntimeError::code);
                let texts: Vec<_> = errors.iter().map(ToString::to_string).collect();
                Error::new(code, texts.join("; "))
            }
            Self::System { action, path, source } => {
                Error::io(format!("{action} {}: {source}", path.display()))
            }
            Self::Usage(error) => error.clone(),
        }
    }
}

impl From<RuntimeError> for Failure {
    fn from(error: RuntimeError) -> Self {
        Self::Runtime(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<podwire_sys::PathError> for Failure {
    fn from(error: podwire_sys::PathError) -> Self {
        Self::System { action: error.operation, path: error.path, source: error.source }
    }
}
