//! The socket: a connection to nftables of one network namespace.
//!
//! Committing is in `transaction`, listing in `listing`.

use rustix::io::Errno;

use super::batch::{SUBSYSTEM, kind};
use super::{Family, SetId, TableId, decode};
use crate::attribute::Attributes;
use crate::error::{Cause, Error, Malformed, Subject};
use crate::message::Body;
use crate::socket::{Protocol, Socket};

/// A connection to nftables of the network namespace that it was opened in.
#[derive(Debug)]
pub struct NftSocket {
    pub(super) socket: Socket,
    /// Whether the kernel has the messages that delete what may not exist.
    pub(super) destroy: Option<bool>,
}

impl NftSocket {
    /// Opens a connection in the calling thread's network namespace.
    ///
    /// Whether the kernel has nftables shows at the first use: the error says so with
    /// [`Error::is_unsupported`].
    pub fn open() -> Result<Self, Error> {
        Ok(Self { socket: Socket::open(Protocol::Netfilter)?, destroy: None })
    }

    /// Behaves as on a kernel before 6.3, which can't delete what may not exist: looks first, and
    /// looks again when the tables changed in between.
    pub fn assume_no_destroy(&mut self) {
        self.destroy = Some(false);
    }

    /// The number of the current generation of all tables; each commit raises it.
    pub fn generation(&mut self) -> Result<u32, Error> {
        let subject = Subject::new("asking for the nftables generation", &"");
        let fetched =
            self.socket.fetch(subject, SUBSYSTEM | kind::GET_GENERATION, header, |reply| {
                let mut attributes = Attributes::after(reply.payload, decode::NFGENMSG)?;
                match attributes.find_map(|item| item.ok().filter(|item| item.kind == 1)) {
                    Some(generation) => generation.u32_be(),
                    None => Err(Malformed("a generation without its number")),
                }
            });
        match fetched {
            // nfnetlink's answer when nobody serves the subsystem.
            Err(error) if error.errno() == Some(Errno::INVAL) => Err(subject.error(no_nftables())),
            other => other,
        }
    }
}

pub(super) fn no_nftables() -> Cause {
    Cause::Unsupported("nftables (CONFIG_NF_TABLES)".to_owned())
}

/// `None` for what isn't there.
pub(super) fn present<T>(result: Result<T, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

fn header(body: &mut Body<'_>) {
    family_header(body, None);
}

pub(super) fn family_header(body: &mut Body<'_>, family: Option<Family>) {
    body.raw(&[family.map_or(0, Family::number), 0, 0, 0]);
}

pub(super) fn table_header(body: &mut Body<'_>, id: TableId<'_>) {
    family_header(body, Some(id.family));
    body.string(1, id.name);
}

pub(super) fn set_header(body: &mut Body<'_>, id: SetId<'_>) {
    table_header(body, id.table);
    body.string(2, id.name);
}
