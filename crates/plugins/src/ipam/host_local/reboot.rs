//! What a reboot has made worthless.
//!
//! Containers don't survive a reboot, their reservations do, and no DEL ever
//! comes for those of a power cut (B001). Two things that can't both be wrong
//! must say that a reservation is older than this boot: an index of ours
//! from another boot holds it (so it existed then), and its file was last
//! changed before the machine was booted. Without both, or when /proc can't
//! tell, nothing is freed by itself.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use podwire_sys::boot::{self, BootId};

use super::index::{Entry, Index};
use super::pool::Reservation;

/// The indexes of a network with the boot of each.
pub(super) fn indexes(directory: &Path) -> Vec<(PathBuf, BootId)> {
    let Ok(listing) = std::fs::read_dir(directory) else { return Vec::new() };
    listing
        .flatten()
        .filter_map(|entry| {
            let boot = BootId::parse(entry.file_name().to_str()?)?;
            Some((entry.path(), boot))
        })
        .collect()
}

/// Those of `all` that are proven to be from before this boot.
pub(super) fn outdated(directory: &Path, boot: &BootId, all: &[Reservation]) -> Vec<Reservation> {
    let Ok(booted) = boot::boot_time() else { return Vec::new() };
    let stamps: HashSet<Entry> = indexes(directory)
        .into_iter()
        .filter(|(_, other)| other != boot)
        .filter_map(|(path, _)| Index::open(&path)?.entries().ok())
        .flatten()
        .collect();
    all.iter()
        .filter(|one| is_older(one, booted))
        .filter(|one| stamps.contains(&(one.owner.hash(), one.address)))
        .cloned()
        .collect()
}

/// How many of these were made before this boot, going by the clock alone:
/// enough to advise a person, not to free anything.
pub(super) fn count_older<'r>(all: impl Iterator<Item = &'r Reservation>) -> usize {
    let Ok(booted) = boot::boot_time() else { return 0 };
    all.filter(|one| is_older(one, booted)).count()
}

fn is_older(reservation: &Reservation, booted: SystemTime) -> bool {
    reservation.modified < booted
}
