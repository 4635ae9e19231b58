//! GC: frees what no live attachment holds (B001).

use std::collections::HashSet;

use podwire_spec::Error;
use podwire_spec::request::ValidAttachments;

use super::errors;
use super::ledger::Ledger;
use super::reservation::Owner;

/// Frees every reservation whose attachment is not valid. One that names only
/// a container stays as long as any attachment of it is valid. `lock` and
/// `last_reserved_ip.*` stay.
///
/// # Errors
/// Code 5 with the first file that can't be removed; the others are.
pub(super) fn collect(ledger: &mut Ledger, valid: &ValidAttachments) -> Result<(), Error> {
    let network = ledger.pool().network().clone();
    let failed = |error| errors::path(&network, &error);
    let list = valid.as_slice();
    let attachments: HashSet<(&str, &str)> =
        list.iter().map(|one| (one.container_id.as_str(), one.ifname.as_str())).collect();
    let containers: HashSet<&str> = list.iter().map(|one| one.container_id.as_str()).collect();
    let is_alive = |owner: &Owner| match owner {
        Owner::Attachment { container, ifname } => {
            attachments.contains(&(container.as_str(), ifname.as_str()))
        }
        Owner::Container(container) => containers.contains(container.as_str()),
        Owner::Unreadable => false,
    };
    let mut outcome = Ok(());
    for reservation in ledger.all().map_err(failed)? {
        if is_alive(&reservation.owner) {
            continue;
        }
        match ledger.free(&reservation) {
            Ok(()) => log::info!(
                "freed {} of network {network}: {} is not among the {} valid attachments",
                reservation.address,
                reservation.owner,
                list.len()
            ),
            Err(error) => outcome = outcome.and(Err(failed(error))),
        }
    }
    // No reservation, yet in the way of one for good.
    for address in ledger.pool().symbolic_links().map_err(failed)? {
        match ledger.pool().free(address) {
            Ok(()) => log::warn!(
                "removed {address} of network {network}: it is a symbolic link, not a reservation"
            ),
            Err(error) => outcome = outcome.and(Err(failed(error))),
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ipam::host_local::ledger::Purpose;
    use crate::ipam::host_local::pool::Pool;
    use podwire_spec::id::NetworkName;
    use podwire_spec::request::ValidAttachment;

    /// B001, B002
    #[test]
    fn b001_only_what_is_not_valid_is_freed() {
        let directory = tempfile::tempdir().unwrap();
        let network = NetworkName::parse("n1").unwrap();
        let pool = Pool::open_or_create(directory.path(), &network).unwrap();
        let here = pool.path().to_owned();
        for (name, content) in [
            ("10.9.0.2", "live\r\neth0"),
            ("10.9.0.3", "live\r\neth1"),
            ("10.9.0.4", "dead\r\neth0"),
            ("10.9.0.5", "live"),
            ("10.9.0.6", "dead"),
            ("10.9.0.7", ""),
            ("last_reserved_ip.0", "10.9.0.7"),
            ("README", "dead\r\neth0"),
        ] {
            std::fs::write(here.join(name), content).unwrap();
        }
        // One that leads nowhere, and one to a living container's file.
        std::os::unix::fs::symlink("nowhere", here.join("10.9.0.8")).unwrap();
        std::os::unix::fs::symlink("10.9.0.2", here.join("10.9.0.9")).unwrap();
        std::os::unix::fs::symlink("10.9.0.2", here.join("mine")).unwrap();
        let is_link = |name: &str| std::fs::symlink_metadata(here.join(name)).is_ok();
        let mut ledger = Ledger::open(pool, directory.path(), Purpose::Free).unwrap();
        let live = ValidAttachment { container_id: "live".to_owned(), ifname: "eth0".to_owned() };
        collect(&mut ledger, &ValidAttachments::List(vec![live])).unwrap();
        let left = || podwire_sys::file::regular_files(&here, 100).unwrap();
        assert_eq!(left(), ["10.9.0.2", "10.9.0.5", "README", "last_reserved_ip.0", "lock"]);
        assert_eq!(std::fs::read(here.join("10.9.0.2")).unwrap(), b"live\r\neth0");
        assert!(!is_link("10.9.0.8") && !is_link("10.9.0.9") && is_link("mine"));
        collect(&mut ledger, &ValidAttachments::Null).unwrap();
        assert_eq!(left(), ["README", "last_reserved_ip.0", "lock"]);
    }
}
