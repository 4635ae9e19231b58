//! The linker's build id, from the notes of an ELF file (elf(5)).

use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};

use crate::PathError;
use crate::error::at;

/// `PT_NOTE` and `NT_GNU_BUILD_ID`, elf.h.
const PT_NOTE: u32 = 4;
const NT_GNU_BUILD_ID: u32 = 3;
/// Sizes of the 64-bit file header and of one program header.
const FILE_HEADER: usize = 64;
const PROGRAM_HEADER: usize = 56;
/// Beyond these a file isn't one that we would run in-process.
const MOST_HEADERS: u16 = 128;
const MOST_NOTES: u64 = 64 << 10;
/// The longest digest that linkers write.
const LONGEST: usize = 64;

/// The build id of a program of this machine's kind (64 bits, little-endian); `None`
/// if it was linked without one or is no such program (a script).
///
/// # Errors
/// When the file can't be opened or read.
pub fn build_id(path: &Path) -> Result<Option<Vec<u8>>, PathError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = rustix::fs::open(path, flags, Mode::empty()).map_err(at("opening", path))?;
    let mode = rustix::fs::fstat(&file).map_err(at("looking at", path))?.st_mode;
    if FileType::from_raw_mode(mode) != FileType::RegularFile {
        return Ok(None);
    }
    let read = |offset: u64, size: usize| -> Result<Vec<u8>, PathError> {
        let mut bytes = vec![0; size];
        let mut filled = 0;
        while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            let from = offset.saturating_add(filled as u64);
            match rustix::io::retry_on_intr(|| rustix::io::pread(&file, &mut *rest, from)) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) => return Err(PathError::new("reading", path, error)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    };
    let header = read(0, FILE_HEADER)?;
    let Some((table, count)) = program_headers(&header) else { return Ok(None) };
    let table = read(table, usize::from(count) * PROGRAM_HEADER)?;
    for entry in table.chunks_exact(PROGRAM_HEADER) {
        if number::<4>(entry, 0).map(u32::from_le_bytes) != Some(PT_NOTE) {
            continue;
        }
        let offset = number::<8>(entry, 8).map_or(0, u64::from_le_bytes);
        let size = number::<8>(entry, 32).map_or(0, u64::from_le_bytes).min(MOST_NOTES);
        let notes = read(offset, usize::try_from(size).unwrap_or(0))?;
        if let Some(id) = find_in(&notes) {
            return Ok(Some(id.to_vec()));
        }
    }
    Ok(None)
}

/// Where the program headers start and how many there are.
fn program_headers(header: &[u8]) -> Option<(u64, u16)> {
    // Magic number, 64 bits, little-endian.
    if header.get(..6)? != b"\x7fELF\x02\x01" {
        return None;
    }
    let table = u64::from_le_bytes(number(header, 32)?);
    let size = u16::from_le_bytes(number(header, 54)?);
    let count = u16::from_le_bytes(number(header, 56)?);
    (usize::from(size) == PROGRAM_HEADER && count <= MOST_HEADERS).then_some((table, count))
}

/// Walks the notes: name size, content size, type, name, content, each padded to 4.
fn find_in(mut notes: &[u8]) -> Option<&[u8]> {
    loop {
        let name_size = usize::try_from(u32::from_le_bytes(number(notes, 0)?)).ok()?;
        let content_size = usize::try_from(u32::from_le_bytes(number(notes, 4)?)).ok()?;
        let kind = u32::from_le_bytes(number(notes, 8)?);
        let name_end = 12_usize.checked_add(name_size)?;
        let content_start = name_end.checked_next_multiple_of(4)?;
        let content_end = content_start.checked_add(content_size)?;
        let content = notes.get(content_start..content_end)?;
        if kind == NT_GNU_BUILD_ID && notes.get(12..name_end)? == b"GNU\0" {
            return (!content.is_empty() && content.len() <= LONGEST).then_some(content);
        }
        notes = notes.get(content_end.checked_next_multiple_of(4)?..)?;
    }
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(name: &[u8], kind: u32, content: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let length = |part: &[u8]| u32::try_from(part.len()).unwrap();
        for word in [length(name), length(content), kind] {
            bytes.extend(word.to_le_bytes());
        }
        for part in [name, content] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    }

    /// A program with nothing but the notes given.
    fn program(notes: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; FILE_HEADER + PROGRAM_HEADER];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32..40].copy_from_slice(&64_u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56_u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1_u16.to_le_bytes());
        bytes[64..68].copy_from_slice(&PT_NOTE.to_le_bytes());
        bytes[72..80].copy_from_slice(&120_u64.to_le_bytes());
        bytes[96..104].copy_from_slice(&(notes.len() as u64).to_le_bytes());
        bytes.extend(notes);
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Vec<u8>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        build_id(file.path()).unwrap()
    }

    #[test]
    fn finds_the_id_behind_another_note() {
        let mut notes = note(b"GNU\0", 1, &[1, 2, 3]);
        notes.extend(note(b"GNU\0", NT_GNU_BUILD_ID, &[7; 20]));
        assert_eq!(of(&program(&notes)), Some(vec![7; 20]));
    }

    #[test]
    fn hostile_and_other_files_have_none() {
        assert_eq!(of(b"#!/bin/sh\n"), None);
        assert_eq!(of(b""), None);
        assert_eq!(of(&program(&note(b"Xen\0", NT_GNU_BUILD_ID, &[7; 20]))), None);
        assert_eq!(of(&program(&note(b"GNU\0", NT_GNU_BUILD_ID, &[]))), None);
        assert_eq!(of(&program(&[0xff; 40])), None);
        let whole = program(&note(b"GNU\0", NT_GNU_BUILD_ID, &[7; 20]));
        for length in 0..whole.len() {
            assert_eq!(of(&whole[..length]), None, "cut at {length}");
        }
    }
}
