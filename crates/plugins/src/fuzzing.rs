//! Doors to what reads records of the plugins, for fuzzing. No part of the API.

/// Reads the record of an attachment's port mappings; says how many it has.
pub fn port_mappings(text: &str) -> usize {
    crate::meta::portmap::mappings_in(text)
}

/// Reads a file in the form of resolv.conf(5); says how many servers it names.
pub fn name_servers(text: &str) -> usize {
    crate::ipam::servers_in(text)
}
