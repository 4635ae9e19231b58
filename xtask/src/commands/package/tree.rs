//! What a package holds, before it is one.

use std::collections::BTreeMap;
use std::path::Path;

use crate::process::{command, output};
use crate::{Result, workspace};

/// Where the plugins lie: a runtime may be pointed here, or `podwire migrate` brings
/// them to where it looks.
const PLUGINS: &str = "usr/lib/podwire/cni";
/// Where systemd looks for a package's units.
const UNITS: &str = "usr/lib/systemd/system";
/// Where the units of the checkout expect the plugins.
const UNITS_EXPECT: &str = "/opt/cni/bin/";
/// The units' name in the checkout is that of the Go project's; a package of that
/// may be on the machine too.
const UNIT_NAMES: (&str, &str) = ("cni-dhcp", "podwire-dhcp");

/// One name in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Entry {
    /// A file with its permissions.
    File { mode: u32, bytes: Vec<u8> },
    /// A second name of a file, by its path in the tree.
    Link { to: String },
}

/// Paths, relative and sorted, and what is there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) entries: BTreeMap<String, Entry>,
}

impl Tree {
    /// Everything that ships, from `target/dist` and the checkout.
    ///
    /// # Errors
    /// Something is missing, or a program doesn't run.
    pub(super) fn collect() -> Result<Self> {
        let (dist, root) = (workspace::dist(), workspace::root());
        let mut tree = Self::default();
        let program = dist.join("podwire");
        tree.file("usr/bin/podwire", 0o755, std::fs::read(&program)?);
        let plugins = dist.join("podwire-cni");
        let names = output(command(&plugins.to_string_lossy()).arg("--list-plugins"))?;
        tree.plugins(std::fs::read(&plugins)?, names.lines());
        for (shell, path) in [
            ("bash", "usr/share/bash-completion/completions/podwire"),
            ("zsh", "usr/share/zsh/vendor-completions/_podwire"),
            ("fish", "usr/share/fish/vendor_completions.d/podwire.fish"),
        ] {
            let script = output(command(&program.to_string_lossy()).args(["completions", shell]))?;
            tree.file(path, 0o644, script.into_bytes());
        }
        tree.pages(&program)?;
        tree.units(&root.join("deploy"))?;
        tree.file("usr/share/doc/podwire/copyright", 0o644, std::fs::read(root.join("LICENSE"))?);
        for page in ["README.md", "CHANGELOG.md"] {
            let path = format!("usr/share/doc/podwire/{page}");
            tree.file(&path, 0o644, std::fs::read(root.join(page))?);
        }
        tree.folder("usr/share/doc/podwire/docs", &root.join("docs"))?;
        Ok(tree)
    }

    /// Everything in a folder, and in those below it.
    pub(super) fn folder(&mut self, to: &str, from: &Path) -> Result<()> {
        for entry in std::fs::read_dir(from)? {
            let entry = entry?;
            let path = format!("{to}/{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                self.folder(&path, &entry.path())?;
            } else {
                self.file(&path, 0o644, std::fs::read(entry.path())?);
            }
        }
        Ok(())
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, bytes: Vec<u8>) {
        self.entries.insert(path.to_owned(), Entry::File { mode, bytes });
    }

    /// The program, and a link to it under every plugin's name.
    pub(super) fn plugins<'n>(&mut self, program: Vec<u8>, names: impl Iterator<Item = &'n str>) {
        let to = format!("{PLUGINS}/podwire-cni");
        self.file(&to, 0o755, program);
        for name in names {
            let link = Entry::Link { to: to.clone() };
            self.entries.insert(format!("{PLUGINS}/{name}"), link);
        }
    }

    /// The manual, which the program writes itself.
    fn pages(&mut self, program: &Path) -> Result<()> {
        let folder = workspace::target().join("package/man");
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder)?;
        output(command(&program.to_string_lossy()).arg("man").arg(&folder))?;
        for page in std::fs::read_dir(&folder)? {
            let page = page?;
            let path = format!("usr/share/man/man1/{}", page.file_name().to_string_lossy());
            self.file(&path, 0o644, std::fs::read(page.path())?);
        }
        Ok(())
    }

    /// The units, for where a package has the plugins.
    fn units(&mut self, folder: &Path) -> Result<()> {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            let extension = path.extension().unwrap_or_default();
            if extension != "service" && extension != "socket" {
                continue;
            }
            let (old, new) = UNIT_NAMES;
            let name = path.file_name().unwrap_or_default().to_string_lossy().replace(old, new);
            let text = std::fs::read_to_string(&path)?;
            let text = text.replace(UNITS_EXPECT, &format!("/{PLUGINS}/")).replace(old, new);
            self.file(&format!("{UNITS}/{name}"), 0o644, text.into_bytes());
        }
        Ok(())
    }

    /// Every folder above a name of the tree, sorted, each once.
    pub(super) fn folders(&self) -> Vec<String> {
        let mut folders: Vec<String> = Vec::new();
        for path in self.entries.keys() {
            let above = Path::new(path).ancestors().skip(1);
            folders.extend(above.map(|folder| folder.to_string_lossy().into_owned()));
        }
        folders.retain(|folder| !folder.is_empty());
        folders.sort();
        folders.dedup();
        folders
    }
}
