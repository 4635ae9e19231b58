//! Doors to what reads the kernel's tables, for fuzzing. No part of the API.

/// Reads a line of /proc/locks.
pub fn lock_line(line: &str, file: &str) -> Option<u32> {
    crate::lock::pid_of(line, file)
}

/// Reads a line of /proc/PID/mountinfo.
pub fn mount_line(line: &[u8]) -> Option<crate::mount::Mount> {
    crate::mount::parse(line)
}

/// Reads /proc/stat.
pub fn boot_time(text: &str) -> Option<std::time::SystemTime> {
    crate::boot::parse_boot_time(text)
}
