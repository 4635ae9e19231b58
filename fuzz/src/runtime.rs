//! What the runtime library reads from disk.

use podwire_runtime::load::Directory;
use podwire_runtime::store::Store;
use podwire_spec::id::{AttachmentKey, ContainerId, IfName, NetworkName};

use crate::scratch::{Scratch, parts};

/// Files of a configuration directory, and one of the folder beside it.
pub(crate) fn directory(data: &[u8]) {
    let scratch = Scratch::new("directory");
    let names = ["10-a.conflist", "20-b.conf", "n/30-c.conf", "40-d.json"];
    for (name, bytes) in names.iter().zip(parts(data)) {
        scratch.write(name, bytes);
    }
    let Ok(found) = Directory::read(scratch.path()) else { return };
    for problem in &found.problems {
        assert!(!problem.to_string().is_empty());
    }
    for network in &found.networks {
        let _ = (network.name(), network.recorded().len(), network.path());
    }
    let _ = found.first_networks(1);
    let _ = found.take("n");
}

/// A record of an attachment, where libcni keeps it and where intents are.
pub(crate) fn record(data: &[u8]) {
    let scratch = Scratch::new("record");
    scratch.write("results/n-c1-eth0", data);
    scratch.write("podwire/intents/n:c1:eth0", data);
    let store = Store::new(scratch.path());
    let key = AttachmentKey {
        network: NetworkName::parse("n").unwrap(),
        container_id: ContainerId::parse("c1").unwrap(),
        ifname: IfName::parse("eth0").unwrap(),
    };
    let found = store.find(&key).unwrap();
    for stored in found.attached.iter().chain(&found.unfinished) {
        let record = &stored.record;
        assert_eq!(record.key, key);
        let _ = (record.cni_result(), record.to_json());
    }
    let _ = (found.best(), found.pending());
    let _ = store.list().unwrap();
}
