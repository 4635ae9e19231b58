//! One network as it is configured, with the plugins of its folder.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use podwire_spec::config::{NetworkList, PluginConfig};
use podwire_spec::error::Error;
use podwire_spec::id::NetworkName;

use super::{Kind, Problem, files};

/// A network that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    list: NetworkList,
    path: Option<PathBuf>,
}

impl Network {
    /// Reads a list from bytes; no folder is looked at.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn from_list_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let list = NetworkList::from_bytes(bytes)?;
        list.require_plugins()?;
        Ok(Self { list, path: None })
    }

    /// Reads a single plugin configuration from bytes, under the name of its
    /// own or else the one given.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn from_plugin_bytes(
        bytes: &[u8],
        fallback_name: Option<&NetworkName>,
    ) -> Result<Self, Error> {
        Ok(Self { list: NetworkList::from_plugin_bytes(bytes, fallback_name)?, path: None })
    }

    /// Reads what an attachment's record holds: always a list.
    pub(crate) fn from_recorded(bytes: &[u8]) -> Result<Self, Error> {
        Self::from_list_bytes(bytes)
    }

    /// Reads a file, as its ending says (anything but `.conf` and `.json` is a
    /// list), and the plugins of its folder.
    ///
    /// # Errors
    /// The file that can't be used, and where in it.
    pub fn from_file(path: &Path) -> Result<Self, Problem> {
        let bytes = files::read(path)?;
        let read = match Kind::of(path) {
            Some(Kind::Single) => NetworkList::from_plugin_bytes(&bytes, None),
            Some(Kind::List) | None => NetworkList::from_bytes(&bytes),
        };
        let mut list = read.map_err(|error| Problem::config(path, error, &bytes))?;
        if list.wants_folder_plugins() {
            add_folder(&mut list, path)?;
        }
        list.require_plugins().map_err(|error| Problem::config(path, error.into(), &bytes))?;
        Ok(Self { list, path: Some(path.to_owned()) })
    }

    /// The network's name.
    pub fn name(&self) -> &NetworkName {
        &self.list.name
    }

    /// Its plugins and how to run them.
    pub fn list(&self) -> &NetworkList {
        &self.list
    }

    /// The file it was read from.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// A recorded network, with the folder plugins of `now` appended if `now`
    /// has the very plugins recorded before them.
    ///
    /// libcni records a list without the plugins of its folder, so that a DEL
    /// from the record never reached them. Our records hold them; in a record
    /// of libcni this is where they are got from. A plugin that came to the
    /// folder since then gets a DEL that finds nothing to do.
    #[must_use]
    pub(crate) fn with_folder_of(mut self, now: Option<&Self>) -> Self {
        let Some(now) = now.map(Self::list) else { return self };
        if self.list.wants_folder_plugins()
            && now.wants_folder_plugins()
            && let Some(further) = now.plugins.strip_prefix(self.list.plugins.as_slice())
        {
            for plugin in further {
                self.list.push_folder_plugin(plugin.clone());
            }
        }
        self
    }

    /// What an attachment's record holds of it, so that DEL runs what ADD ran.
    pub fn recorded(&self) -> Cow<'_, [u8]> {
        self.list.record()
    }
}

/// Appends the plugins of the folder named as the network, beside its file.
/// The name is a validated one, so that it can't lead elsewhere.
fn add_folder(list: &mut NetworkList, file: &Path) -> Result<(), Problem> {
    let folder = file.with_file_name(list.name.as_str());
    if !folder.is_dir() {
        return Ok(());
    }
    let is_plugin = |path: &Path| path.extension().is_some_and(|ending| ending == "conf");
    for path in files::entries(&folder, is_plugin)? {
        if path.is_dir() {
            continue;
        }
        let bytes = files::read(&path)?;
        let plugin = PluginConfig::from_bytes(&bytes)
            .map_err(|error| Problem::config(&path, error, &bytes))?;
        list.push_folder_plugin(plugin);
    }
    Ok(())
}
