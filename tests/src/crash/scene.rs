//! What happens around a kill.

use std::fmt;

/// What became of the sandbox before the recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It is still there.
    Kept,
    /// It is gone.
    Removed,
    /// It is gone, and another container's lies at its path.
    Replaced(Stranger),
    /// It is gone with everything that the kernel knew: the machine was booted again.
    Rebooted,
}

/// Who attached the container whose namespace lies at the old path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// The subject itself, under another container id.
    Ours,
    /// The Go plugins, to the same bridge with an address from the same pool.
    Go,
}

/// What was on the host before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Host {
    /// Nothing: no bridge, no table.
    Fresh,
    /// Another container of the same network.
    InUse,
}

/// How it is recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recovery {
    /// DEL, DEL again, then GC, as runtimes do it.
    Del,
    /// GC alone: whoever attached was forgotten.
    Collection,
}

/// Whether the runtime still knows what ADD had printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record {
    /// The recovery gets it as prevResult.
    Kept,
    /// It is lost.
    Lost,
}

/// Everything around one kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scene {
    /// The sandbox.
    pub fate: Fate,
    /// The host.
    pub host: Host,
    /// The recovery.
    pub recovery: Recovery,
    /// The record; without meaning for ADD, which had not printed anything.
    pub record: Record,
}

impl Scene {
    /// The scenes in an order in which neighbours differ in as much as possible, so
    /// that few places see many of them. Go strangers are in it where `has_go`.
    pub fn all(has_go: bool) -> Vec<Self> {
        let go = if has_go { Stranger::Go } else { Stranger::Ours };
        let is_set = |number: usize, bit: usize| (number / bit) % 2 == 1;
        let fates = |number: usize| match number % 4 {
            0 => Fate::Kept,
            1 => Fate::Removed,
            2 => Fate::Replaced(if is_set(number, 8) { Stranger::Ours } else { go }),
            _ => Fate::Rebooted,
        };
        (0..80)
            .map(|number| Self {
                fate: fates(number),
                host: if is_set(number, 4) { Host::InUse } else { Host::Fresh },
                recovery: if number % 5 == 4 { Recovery::Collection } else { Recovery::Del },
                record: if is_set(number, 16) { Record::Lost } else { Record::Kept },
            })
            .collect()
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = match self.fate {
            Fate::Kept => "namespace kept",
            Fate::Removed => "namespace removed",
            Fate::Replaced(Stranger::Ours) => "namespace replaced by ours",
            Fate::Replaced(Stranger::Go) => "namespace replaced by Go's",
            Fate::Rebooted => "rebooted",
        };
        let host = match self.host {
            Host::Fresh => "first on the host",
            Host::InUse => "beside another",
        };
        let recovery = match self.recovery {
            Recovery::Del => "DEL, DEL, GC",
            Recovery::Collection => "GC alone",
        };
        let record = match self.record {
            Record::Kept => "result kept",
            Record::Lost => "result lost",
        };
        write!(f, "{fate}, {host}, {record}, {recovery}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_scenes_hold_every_pair_of_what_matters() {
        let scenes = Scene::all(true);
        for fate in [
            Fate::Kept,
            Fate::Removed,
            Fate::Replaced(Stranger::Ours),
            Fate::Replaced(Stranger::Go),
            Fate::Rebooted,
        ] {
            let with = |wanted: &dyn Fn(&Scene) -> bool| {
                scenes.iter().any(|scene| scene.fate == fate && wanted(scene))
            };
            assert!(with(&|scene| scene.host == Host::Fresh), "{fate:?}");
            assert!(with(&|scene| scene.host == Host::InUse), "{fate:?}");
            assert!(with(&|scene| scene.recovery == Recovery::Del), "{fate:?}");
            assert!(with(&|scene| scene.recovery == Recovery::Collection), "{fate:?}");
            assert!(with(&|scene| scene.record == Record::Lost), "{fate:?}");
        }
        assert!(!Scene::all(false).iter().any(|one| one.fate == Fate::Replaced(Stranger::Go)));
    }
}
