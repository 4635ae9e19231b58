//! Paths as people write them: made absolute as cnitool does it, and brought
//! to the one spelling that identifies a namespace.

use std::path::{Component, Path, PathBuf};

/// The path made absolute and freed of `.` and `..` by its text alone, as Go's
/// `filepath.Abs` does it: links are not looked at.
///
/// # Errors
/// When the working directory is gone.
pub(crate) fn absolute(path: &Path) -> std::io::Result<PathBuf> {
    let joined =
        if path.is_absolute() { path.to_owned() } else { std::env::current_dir()?.join(path) };
    let mut clean = PathBuf::from("/");
    for component in joined.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Ok(clean)
}

/// The path without symbolic links, as far as it exists: `/var/run/netns/x`
/// and `/run/netns/x` come out the same, also after `x` is gone. An entry of
/// `/proc/PID/ns` stays as it is, for it is a link to nowhere by its text.
pub(crate) fn canonical(absolute: &Path) -> PathBuf {
    let whole = std::fs::canonicalize(absolute).ok();
    if let Some(path) = whole.filter(|path| path.exists()) {
        return path;
    }
    let mut missing = Vec::new();
    let mut present = absolute;
    while let (Some(parent), Some(name)) = (present.parent(), present.file_name()) {
        missing.push(name);
        if let Ok(mut path) = std::fs::canonicalize(parent) {
            path.extend(missing.iter().rev());
            return path;
        }
        present = parent;
    }
    absolute.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn absolute_works_on_the_text() {
        let cleaned = |path: &str| absolute(Path::new(path)).unwrap();
        assert_eq!(cleaned("/run//netns/./a/../b/"), Path::new("/run/netns/b"));
        assert_eq!(cleaned("/../.."), Path::new("/"));
        assert_eq!(cleaned("./a"), std::env::current_dir().unwrap().join("a"));
    }

    #[test]
    fn b086_all_spellings_of_a_namespace_are_one() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        std::fs::create_dir_all(root.join("run/netns")).unwrap();
        symlink(root.join("run"), root.join("var")).unwrap();
        std::fs::write(root.join("run/netns/a"), "").unwrap();
        for name in ["a", "gone", "gone/deeper"] {
            let expected = root.join("run/netns").join(name);
            assert_eq!(canonical(&root.join("var/netns").join(name)), expected);
            assert_eq!(canonical(&expected), expected);
        }
    }

    #[test]
    fn a_namespace_of_a_process_keeps_its_path() {
        let own = PathBuf::from(format!("/proc/{}/ns/net", std::process::id()));
        assert_eq!(canonical(&own), own);
        assert_eq!(canonical(Path::new("/proc/self/ns/net")), own);
    }
}
