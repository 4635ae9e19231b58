//! `host-local`, the plugin whose memory is files that others write too.

use podwire_plugins::ipam::HostLocal;
use podwire_sys::boot;

use crate::rehearsal::{VERBS, call, variables};
use crate::scratch::{Scratch, parts};

/// Its `ipam` object, with a directory of ours as its last word.
pub(crate) fn config(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let text = text.trim();
    let Some(open) = text.strip_suffix('}') else { return };
    // A path of the machine would be read, which tells nothing new.
    if text.to_ascii_lowercase().contains("resolvconf") || text.contains("\\u") {
        return;
    }
    let scratch = Scratch::new("config");
    let comma = if open.trim_end().ends_with('{') { "" } else { "," };
    let stdin = format!(
        r#"{{"cniVersion":"1.1.0","name":"n","type":"bridge","cni.dev/valid-attachments":[],
           "ipam":{open}{comma}"dataDir":"{}"}}}}"#,
        scratch.path().display()
    );
    for verb in VERBS.iter().chain(&["ADD", "CHECK", "DEL"]) {
        call(&HostLocal, &[], variables(verb), stdin.as_bytes());
    }
}

/// Files of a pool: a reservation, the hint of what was given last, the index
/// of this boot and that of another.
pub(crate) fn files(data: &[u8]) {
    let scratch = Scratch::new("files");
    let mut parts = parts(data);
    let Ok(boot) = boot::boot_id() else { return };
    for name in [
        "n/10.1.0.2".to_owned(),
        "n/last_reserved_ip.0".to_owned(),
        format!(".podwire/n/{}", boot.as_str()),
        ".podwire/n/00000000-1111-2222-3333-444444444444".to_owned(),
    ] {
        if let Some(bytes) = parts.next() {
            scratch.write(&name, bytes);
        }
    }
    let stdin = format!(
        r#"{{"cniVersion":"1.1.0","name":"n","type":"bridge","cni.dev/valid-attachments":[
           {{"containerID":"other","ifname":"eth0"}}],"ipam":{{"type":"host-local",
           "subnet":"10.1.0.0/29","dataDir":"{}"}}}}"#,
        scratch.path().display()
    );
    // Once each: what the files say is read by every one of them.
    for verb in ["STATUS", "CHECK", "ADD", "GC", "DEL"] {
        call(&HostLocal, &[], variables(verb), stdin.as_bytes());
    }
}
