//! What happens around a kill.

use std::fmt;

use podwire_testkit::kill::Blow;

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
    /// Who dies.
    pub blow: Blow,
}

/// How many scenes differ.
const SCENES: usize = 320;

impl Scene {
    /// The scenes in an order in which neighbours differ in as much as possible, so
    /// that few places see many of them. Go strangers are in it where `has_go`.
    pub fn all(has_go: bool) -> Vec<Self> {
        (0..SCENES).map(|number| Self::numbered(number, has_go)).collect()
    }

    /// Every fate with either blow, the rest as it comes: the scenes of one of many
    /// places.
    pub fn of_place(place: usize, has_go: bool) -> Vec<Self> {
        let scenes = (0..4).map(|fate| Self::numbered(4 * place + fate, has_go));
        let blows = [Blow::Process, Blow::Family];
        scenes.flat_map(|scene| blows.map(|blow| Self { blow, ..scene })).collect()
    }

    fn numbered(number: usize, has_go: bool) -> Self {
        let number = number % SCENES;
        let go = if has_go { Stranger::Go } else { Stranger::Ours };
        let is_set = |bit: usize| (number / bit) % 2 == 1;
        // With any other choice made, both are among those that remain.
        let odd = [1, 4, 8, 16, 32].iter().filter(|bit| is_set(**bit)).count() % 2;
        Self {
            fate: match number % 4 {
                0 => Fate::Kept,
                1 => Fate::Removed,
                2 => Fate::Replaced(if is_set(8) { Stranger::Ours } else { go }),
                _ => Fate::Rebooted,
            },
            host: if is_set(4) { Host::InUse } else { Host::Fresh },
            recovery: if number % 5 == 4 { Recovery::Collection } else { Recovery::Del },
            record: if is_set(16) { Record::Lost } else { Record::Kept },
            blow: if odd == 1 { Blow::Family } else { Blow::Process },
        }
    }
}

impl Scene {
    /// What tables count: the sandbox's fate and who was killed.
    pub fn kind(self) -> String {
        format!("{}, {} killed", self.fate.as_str(), self.killed())
    }

    fn killed(self) -> &'static str {
        match self.blow {
            Blow::Process => "process",
            Blow::Group | Blow::Family => "group",
        }
    }
}

impl Fate {
    /// The words for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "namespace kept",
            Self::Removed => "namespace gone",
            Self::Replaced(Stranger::Ours) => "another container's namespace at its path",
            Self::Replaced(Stranger::Go) => "a Go plugin's container at its path",
            Self::Rebooted => "host rebooted",
        }
    }
}

impl fmt::Display for Scene {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fate = self.fate.as_str();
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
        let blow = self.killed();
        write!(f, "{fate}, {host}, {record}, {recovery}, {blow} killed")
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
            assert!(with(&|scene| scene.blow == Blow::Process), "{fate:?}");
            assert!(with(&|scene| scene.blow == Blow::Family), "{fate:?}");
        }
        assert!(!Scene::all(false).iter().any(|one| one.fate == Fate::Replaced(Stranger::Go)));
    }

    #[test]
    fn every_place_sees_every_fate_with_both_blows() {
        let fate = |scene: &Scene| std::mem::discriminant(&scene.fate);
        for place in 0..100 {
            let scenes = Scene::of_place(place, true);
            for (number, scene) in scenes.iter().enumerate() {
                let same = |other: &Scene| fate(other) == fate(scene) && other.blow == scene.blow;
                assert_eq!(scenes.iter().position(same), Some(number));
            }
            assert_eq!(scenes.len(), 8);
        }
    }
}
