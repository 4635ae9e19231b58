//! STATUS: could an ADD be served now?

use std::net::IpAddr;
use std::path::Path;

use podwire_spec::Error;
use podwire_spec::request::PluginRequest;
use podwire_spec::version::SpecVersion;
use podwire_sys::boot;
use podwire_sys::file::room_for_files;

use super::config::{self, Config, WhenExhausted};
use super::errors;
use super::ledger::index_directory;
use super::pool::{Pool, Reservation};
use super::range::RangeSet;
use super::reboot;
use super::reservation::Owner;

/// Looks at the configuration, the directory and the free addresses. Takes no
/// lock and changes nothing.
///
/// # Errors
/// Code 7 for a configuration that ADD would refuse; code 50 when the
/// directory can't be written or a range set is full, unless
/// `ipam.statusOnExhausted` is `"warn"`.
pub(super) fn status(request: &PluginRequest<'_>, version: SpecVersion) -> Result<(), Error> {
    let network = &request.name;
    let data_dir = config::data_dir(request)?;
    writable(&data_dir.join(network.as_str()))?;
    if config::ranges_come_with_add(request) {
        return Ok(());
    }
    let config = Config::parse(request, version)?;
    let unreadable = |error| Error::unavailable(errors::path(network, &error).msg);
    let Some(pool) = Pool::open(&data_dir, network).map_err(unreadable)? else { return Ok(()) };
    let names = pool.addresses().map_err(unreadable)?;
    let full = |taken: &[IpAddr]| config.sets.iter().find(|set| is_full(set, taken));
    if full(&names).is_none() {
        return Ok(());
    }
    // As it seems. What the next ADD would free counts as free.
    let all = pool.reservations().map_err(unreadable)?;
    let lost = freed_by_next_add(&data_dir, &pool, &all);
    let taken: Vec<_> = all
        .iter()
        .filter(|one| one.owner != Owner::Unreadable && !lost.contains(one))
        .map(|one| one.address)
        .collect();
    let Some(set) = full(&taken) else { return Ok(()) };
    let text = errors::exhausted(network, set, &all);
    match config.when_exhausted {
        WhenExhausted::Fail => Err(Error::unavailable(text)
            .with_details("to be ready all the same, set ipam.statusOnExhausted to \"warn\"")),
        WhenExhausted::Warn => {
            log::warn!("{text}");
            Ok(())
        }
    }
}

fn is_full(set: &RangeSet, taken: &[IpAddr]) -> bool {
    taken.iter().filter(|address| set.hands_out(**address)).count() as u128 >= set.capacity()
}

/// The first ADD of a boot frees what the reboot made worthless.
fn freed_by_next_add(data_dir: &Path, pool: &Pool, all: &[Reservation]) -> Vec<Reservation> {
    let Ok(boot) = boot::boot_id() else { return Vec::new() };
    let directory = index_directory(data_dir, pool.network());
    if directory.join(boot.as_str()).exists() {
        return Vec::new();
    }
    reboot::outdated(&directory, &boot, all)
}

/// Whether files can be made at the path.
fn writable(path: &Path) -> Result<(), Error> {
    room_for_files(path).map_err(|error| {
        Error::unavailable(format!("ipam.dataDir: reservations can't be written: {error}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status_of(directory: &Path, more: &str) -> Result<(), Error> {
        let text = format!(
            r#"{{"name":"n1","ipam":{{"ranges":[[{{"subnet":"10.9.0.0/30"}}],[{{"subnet":"fd00::/64"}}]],
                "dataDir":{directory:?}{more}}}}}"#
        );
        status(&PluginRequest::parse(&text).unwrap(), SpecVersion::LATEST)
    }

    #[test]
    fn a_full_set_is_code_50_unless_only_a_warning_is_asked_for() {
        let directory = tempfile::tempdir().unwrap();
        let pool = directory.path().join("n1");
        status_of(directory.path(), "").unwrap();
        assert!(!pool.exists(), "STATUS makes nothing");
        std::fs::create_dir(&pool).unwrap();
        std::fs::write(pool.join("10.9.0.1"), "the gateway's name doesn't count").unwrap();
        status_of(directory.path(), "").unwrap();
        std::fs::write(pool.join("10.9.0.2"), "c1\r\neth0").unwrap();
        let error = status_of(directory.path(), "").unwrap_err();
        assert_eq!(error.code.number(), 50);
        assert!(error.msg.contains("10.9.0.1-10.9.0.2 of network n1"), "{error}");
        assert!(error.msg.contains("podwire gc n1 --keep-live"), "{error}");
        status_of(directory.path(), r#","statusOnExhausted":"warn""#).unwrap();
        std::fs::write(pool.join("10.9.0.2"), "").unwrap();
        status_of(directory.path(), "").unwrap();
    }

    #[test]
    fn a_directory_that_cannot_be_written_is_code_50() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        std::fs::write(&file, "").unwrap();
        let error = status_of(&file, "").unwrap_err();
        assert_eq!(error.code.number(), 50);
        assert!(error.msg.contains("ipam.dataDir"), "{error}");
        status_of(&directory.path().join("a/b/c"), "").unwrap();
        let error = status_of(directory.path(), r#","statusOnExhausted":7"#).unwrap_err();
        assert_eq!(error.code.number(), 6);
    }
}
