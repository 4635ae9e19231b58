//! The result of an ADD, in every shape it has had (specification, section 5
//! "Success", of each version).
//!
//! [`CniResult`] is the newest shape, the one to work with. A
//! [`VersionedResult`] is a result in the shape and version it was printed in;
//! it is kept so because the older shapes say things the newest can't (the
//! declared `version` of an address) and because a result is handed on and
//! stored in its own version. Conversion goes both ways, with the losses that
//! each step of it names.

mod convert;
mod newest;
mod older;
mod parse;
mod print;
mod query;

use crate::error::Error;
use crate::version::SpecVersion;

pub use newest::{CniResult, Dns, Interface, IpConfig, Route};
pub use query::{AddressOrigin, ContainerAddresses};

use older::{MiddleResult, OldestResult};

/// A result in the version it was printed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionedResult {
    version: SpecVersion,
    shape: Shape,
}

/// The three shapes; always the one of the version beside it.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Shape {
    Oldest(OldestResult),
    Middle(MiddleResult),
    Newest(CniResult),
}

impl VersionedResult {
    /// The version the result declares, or took from the configuration.
    pub const fn version(&self) -> SpecVersion {
        self.version
    }

    /// The result in the newest shape.
    ///
    /// # Errors
    /// None today; kept for shapes to come that need not convert.
    pub fn into_newest(self) -> Result<CniResult, Error> {
        Ok(convert::to_newest(self.shape))
    }

    /// The result in another version.
    ///
    /// # Errors
    /// Code 999 if the target is 0.1.0 or 0.2.0 and there is no address those
    /// can hold.
    pub fn convert(self, to: SpecVersion) -> Result<Self, Error> {
        convert::convert(self, to)
    }

    /// The result as a plugin prints it.
    pub fn to_json(&self) -> String {
        print::pretty(self)
    }

    /// The result on one line, as it is put into a request or a record.
    pub fn to_compact_json(&self) -> String {
        print::compact(self)
    }
}

impl CniResult {
    /// The result in a version asked for.
    ///
    /// # Errors
    /// Code 999 if the version is 0.1.0 or 0.2.0 and there is no address those
    /// can hold.
    pub fn into_version(self, version: SpecVersion) -> Result<VersionedResult, Error> {
        VersionedResult { version: SpecVersion::LATEST, shape: Shape::Newest(self) }
            .convert(version)
    }

    /// The result as a plugin prints it in a version asked for.
    ///
    /// # Errors
    /// As [`CniResult::into_version`].
    pub fn to_json(&self, version: SpecVersion) -> Result<String, Error> {
        Ok(self.clone().into_version(version)?.to_json())
    }
}
