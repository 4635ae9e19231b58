//! Who is measured.

use std::path::PathBuf;

use podwire_sys::mount;
use podwire_testkit::World;

use crate::Outcome;

/// One implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// Ours.
    Podwire,
    /// The Go plugins of Debian sid, release 1.9.1 or newer.
    GoNew,
    /// The Go plugins of Debian 12, release 1.1.1.
    GoOld,
    /// The fewest netlink messages for the same end state.
    Floor,
}

impl Subject {
    /// All, in the order of the report's columns.
    pub const ALL: [Self; 4] = [Self::Podwire, Self::GoNew, Self::GoOld, Self::Floor];

    /// The column's head.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Podwire => "Podwire",
            Self::GoNew => "Go 1.9.1",
            Self::GoOld => "Go 1.1.1",
            Self::Floor => "floor",
        }
    }

    /// A word for names of links, directories and containers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Podwire => "ours",
            Self::GoNew => "gonew",
            Self::GoOld => "goold",
            Self::Floor => "floor",
        }
    }

    /// A number of its own, for addresses.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Whether it is one of the Go releases.
    pub const fn is_go(self) -> bool {
        matches!(self, Self::GoNew | Self::GoOld)
    }
}

/// Where the programs are.
#[derive(Debug, Clone)]
pub struct Programs {
    /// Our plugins.
    pub plugins: PathBuf,
    /// The `podwire` command.
    pub podwire: PathBuf,
    /// The floor program.
    pub floor: PathBuf,
    /// The Go plugins and the Go client, as `cargo xtask peers` lays them;
    /// `None` where they are left out.
    pub peers: Option<PathBuf>,
}

impl Programs {
    /// Lets the plugins and the peers appear in the world, at a path that is the same
    /// wherever the checkout lies: each folder above a program is one that a plugin
    /// opens, which would show in the counts.
    ///
    /// # Errors
    /// They can't be mounted there.
    pub fn enter(&mut self, world: &World) -> Outcome {
        let appear = |directory: &mut PathBuf, name: &str| {
            let place = world.path(name);
            let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", place.display());
            std::fs::create_dir(&place).map_err(|error| failed(&error))?;
            let real = directory.canonicalize().map_err(|error| failed(&error))?;
            mount::bind(&real, &place).map_err(|error| failed(&error))?;
            *directory = place;
            Ok::<_, String>(())
        };
        appear(&mut self.plugins, "plugins")?;
        self.peers.as_mut().map_or(Ok(()), |peers| appear(peers, "peers"))
    }

    /// The directory of a subject's plugins; the floor has none.
    pub fn plugins(&self, subject: Subject) -> Option<PathBuf> {
        match subject {
            Subject::Podwire => Some(self.plugins.clone()),
            Subject::GoNew => self.peers.as_ref().map(|peers| peers.join("sid")),
            Subject::GoOld => self.peers.as_ref().map(|peers| peers.join("debian")),
            Subject::Floor => None,
        }
    }

    /// The Go runtime on libcni.
    pub fn libcni(&self) -> Option<PathBuf> {
        self.peers.as_ref().map(|peers| peers.join("libcni-client"))
    }
}
