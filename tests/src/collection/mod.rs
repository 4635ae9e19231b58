//! What GC frees, and on what evidence, as data: for each kind of object on the host, of
//! ours and of the Go plugins', how it is made and what becomes of it when its attachment
//! is not valid any more. The tests try every row; `docs/gc.md` shows them.

mod page;
mod prove;
mod rows_go;
mod rows_ours;

use serde_json::Value;

pub use page::page;
pub use prove::prove;

/// One kind of object.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The plugin whose GC looks for it.
    pub plugin: &'static str,
    /// Whose plugins made it.
    pub maker: Maker,
    /// What it is, for people.
    pub object: &'static str,
    /// Where it is and how it is called.
    pub place: &'static str,
    /// What proves whose it is, and that it serves nobody.
    pub evidence: &'static str,
    /// What becomes of it.
    pub fate: Fate,
    /// The plugins' own keys for a container, `type` included. The last one's GC is asked.
    pub chain: fn(&str) -> Vec<Value>,
    /// A script for the host before the first ADD.
    pub prepare: &'static str,
    /// Words in the name or value of those facts of the host's state that are the object.
    pub words: &'static [&'static str],
    /// Whether the dead container's namespace is still there.
    pub namespace: Namespace,
}

impl Row {
    /// What rows have in common: the object goes when the namespace is gone.
    fn of(
        maker: Maker,
        plugin: &'static str,
        object: &'static str,
        chain: fn(&str) -> Vec<Value>,
    ) -> Self {
        Self {
            plugin,
            maker,
            object,
            place: "",
            evidence: "",
            fate: Fate::Removed,
            chain,
            prepare: "",
            words: &[],
            namespace: Namespace::Gone,
        }
    }
}

/// Whose plugins made an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maker {
    /// Podwire's.
    Podwire,
    /// Go's 1.1.1, as in Debian 12.
    Debian,
    /// Go's 1.9.1 or newer.
    Sid,
}

/// What becomes of an object whose attachment is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It goes.
    Removed,
    /// It stays, and these words say so on standard error.
    Reported(&'static [&'static str]),
}

/// What became of a dead container's namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace {
    /// Gone, with all that is in it.
    Gone,
    /// Still there.
    Kept,
}

/// Every row.
pub fn rows() -> Vec<Row> {
    [rows_ours::rows(), rows_go::rows()].concat()
}
