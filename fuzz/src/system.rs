//! State files, the kernel's tables, and a bus.

use podwire_plugin::OwnerMark;
use podwire_plugins::fuzzing as plugins;
use podwire_resources::fuzzing as resources;
use podwire_resources::host_end::owner_of_alias;
use podwire_sys::boot::BootId;
use podwire_sys::fuzzing as system;

/// Files and texts that our plugins wrote, or Go's.
pub(crate) fn state_files(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = resources::attributes_file(&text);
    let _ = resources::device_record(&text);
    let _ = plugins::name_servers(&text);
    for line in text.lines() {
        let _ = plugins::port_mappings(line);
        let _ = (owner_of_alias(line), OwnerMark::from_comment(line));
    }
    if let Some(mark) = OwnerMark::from_bytes(data) {
        assert_eq!(OwnerMark::from_comment(&mark.to_string()), Some(mark));
    }
}

/// Lines of tables under /proc, and of what a legacy tool prints.
pub(crate) fn proc_tables(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let _ = (system::boot_time(&text), BootId::parse(&text));
    for line in data.split(|byte| *byte == b'\n') {
        let _ = system::mount_line(line);
    }
    for line in text.lines() {
        let _ = system::lock_line(line, "fe:00:5678");
        let _ = resources::rule_line(line);
    }
}

/// A message of a bus as the answer to call 7, and the bus' address.
pub(crate) fn bus(data: &[u8]) {
    let _ = resources::bus_message(data, 7);
    let _ = resources::bus_address(&String::from_utf8_lossy(data));
}
