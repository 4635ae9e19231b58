//! How a caller says which network an attachment is of.

use podwire_spec::id::NetworkName;

use crate::load::Network;

/// A network by its name alone, or as it is configured now.
///
/// The name is enough where the record holds the configuration; the loaded
/// network serves where there is no record.
#[derive(Clone, Copy, Debug)]
pub enum NetworkRef<'a> {
    /// Only its name; its file may be gone.
    Named(&'a NetworkName),
    /// As it is configured now.
    Loaded(&'a Network),
}

impl<'a> NetworkRef<'a> {
    /// The network's name.
    pub fn name(&self) -> &'a NetworkName {
        match self {
            Self::Named(name) => name,
            Self::Loaded(network) => network.name(),
        }
    }

    /// Its configuration, if it was given.
    pub fn loaded(&self) -> Option<&'a Network> {
        match self {
            Self::Named(_) => None,
            Self::Loaded(network) => Some(network),
        }
    }
}

impl<'a> From<&'a NetworkName> for NetworkRef<'a> {
    fn from(name: &'a NetworkName) -> Self {
        Self::Named(name)
    }
}

impl<'a> From<&'a Network> for NetworkRef<'a> {
    fn from(network: &'a Network) -> Self {
        Self::Loaded(network)
    }
}
