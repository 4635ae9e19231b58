//! What a Go program is, by what its linker wrote into it.
//!
//! For programs that can't be asked: in a container without the host's C library, one
//! that is linked dynamically doesn't start. Since Go 1.18 every program holds the
//! path of its main package (`debug/buildinfo`): 32 bytes that begin with a magic text,
//! the compiler's version and the module's description, each with its length before it.

use std::path::Path;

use podwire_sys::file::read_bounded;

/// More than a plugin has, in bytes.
const LIMIT: usize = 64 << 20;
/// How it begins.
const MAGIC: &[u8] = b"\xff Go buildinf:";
/// How far behind it the main package stands at most, in bytes.
const REACH: usize = 256;
/// Before the main package.
const PATH: &[u8] = b"path\t";
/// Where the Go project's plugins are, each in a folder by its kind.
const PLUGINS: &str = "github.com/containernetworking/plugins/plugins/";
/// The kinds.
const KINDS: [&str; 3] = ["main/", "ipam/", "meta/"];

/// The plugin of the Go project that the program at a path is, if it is one.
pub(crate) fn plugin_at(path: &Path) -> Option<String> {
    plugin_in(&read_bounded(path, LIMIT).ok()?)
}

/// The same of the program's bytes.
pub(crate) fn plugin_in(program: &[u8]) -> Option<String> {
    let at = find(program, MAGIC)?;
    let info = program.get(at..)?;
    let info = info.get(..REACH).unwrap_or(info);
    let package = info.get(find(info, PATH)? + PATH.len()..)?;
    let package = package.get(..package.iter().position(|byte| *byte == b'\n')?)?;
    let plugin = std::str::from_utf8(package).ok()?.strip_prefix(PLUGINS)?;
    let name = KINDS.iter().find_map(|kind| plugin.strip_prefix(kind))?;
    Some(name.to_owned())
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(package: &str) -> Vec<u8> {
        let mut bytes = b"\x7fELF and code\0".to_vec();
        bytes.extend(MAGIC);
        bytes.extend(b"\x08\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x08go1.19.8\xd1\x01");
        bytes.extend(format!("0123456789abcdefpath\t{package}\nbuild\t-compiler=gc\n").bytes());
        bytes
    }

    #[test]
    fn a_plugin_of_the_go_project_is_known_by_its_main_package() {
        let is = |package: &str| plugin_in(&program(package));
        assert_eq!(is(&format!("{PLUGINS}main/bridge")).as_deref(), Some("bridge"));
        assert_eq!(is(&format!("{PLUGINS}ipam/host-local")).as_deref(), Some("host-local"));
        assert_eq!(is("github.com/somebody/plugins/plugins/main/bridge"), None);
        assert_eq!(is("github.com/containernetworking/plugins/pkg/ns"), None);
    }

    #[test]
    fn what_is_torn_or_none_is_not_known() {
        let whole = program(&format!("{PLUGINS}meta/portmap"));
        let end = find(&whole, b"\nbuild").unwrap();
        for length in 0..=end {
            assert_eq!(plugin_in(&whole[..length]), None, "{length}");
        }
        assert_eq!(plugin_in(b""), None);
        assert_eq!(plugin_in(MAGIC), None);
    }
}
