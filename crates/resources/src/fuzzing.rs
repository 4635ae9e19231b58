//! Doors to what reads state files, answers and rules, for fuzzing. No part of
//! the API.

use podwire_spec::error::Error;

/// Reads the file that keeps an interface's original attributes.
///
/// # Errors
/// It can't be used.
pub fn attributes_file(text: &str) -> Result<(), Error> {
    crate::link_attributes::parse(text)
}

/// Reads the record of a moved device.
///
/// # Errors
/// It can't be used.
pub fn device_record(text: &str) -> Result<(), Error> {
    crate::moved_device::parse(text)
}

/// Reads a message of firewalld's bus as the answer to the call `serial`.
///
/// # Errors
/// It breaks the format.
pub fn bus_message(message: &[u8], serial: u32) -> Result<(), Error> {
    crate::firewalld::read_message(message, serial)
}

/// Reads the address of a bus; says how many sockets it names.
pub fn bus_address(text: &str) -> usize {
    crate::firewalld::sockets_of(text)
}

/// Reads a line of `iptables -S`.
pub fn rule_line(line: &str) -> Vec<String> {
    crate::nft::legacy::xtables::words(line)
}
