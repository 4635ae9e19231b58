//! The pages of `docs/` that say what the tests prove, made from the tests' own data.

use std::path::{Path, PathBuf};

/// A page.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// Its name in `docs/`.
    pub name: &'static str,
    /// What must stand there.
    pub text: fn() -> String,
}

/// All of them.
pub const ALL: &[Page] = &[
    Page { name: "check.md", text: crate::check::page },
    Page { name: "gc.md", text: crate::collection::page },
    Page { name: "status.md", text: crate::readiness::page },
];

impl Page {
    /// Where it is in the project.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(self.name)
    }
}
