//! Changes to the kernel's configuration, applied alone or several in one
//! send.

use std::fmt;

use crate::error::{Cause, Error, Refusal, Subject};
use crate::message::{Flags, Requests};
use crate::route::RouteSocket;

/// One change: a request that is acknowledged, and the words for its error.
///
/// Its `Display` names the object: `10.1.0.2/24 on eth0`.
pub trait Change: fmt::Display {
    /// What is done, as a gerund: `adding address`.
    fn operation(&self) -> &'static str;

    /// Appends the request, which must ask for an acknowledgement.
    fn encode(&self, requests: &mut Requests);
}

/// The flags of a request that is acknowledged.
pub(crate) const ACKNOWLEDGED: Flags = Flags::REQUEST.union(Flags::ACK);

impl RouteSocket {
    /// Applies one change.
    ///
    /// # Errors
    /// The kernel's refusal, or no readable answer in time.
    pub fn apply(&mut self, change: &dyn Change) -> Result<(), Error> {
        self.apply_all(&[change])
    }

    /// Applies changes in order, in one send, and reports the first that was
    /// refused.
    ///
    /// The kernel goes on behind a refused change, so order them such that a
    /// later one does no harm when an earlier one failed; or use
    /// [`apply_each`](Self::apply_each) to learn about all.
    ///
    /// # Errors
    /// The first refusal, or no readable answer in time.
    pub fn apply_all(&mut self, changes: &[&dyn Change]) -> Result<(), Error> {
        let verdicts = self.verdicts(changes)?;
        for (change, verdict) in changes.iter().zip(verdicts) {
            verdict.map_err(|refusal| refused(*change, refusal))?;
        }
        Ok(())
    }

    /// Applies changes in order, in one send, and reports on each.
    ///
    /// # Errors
    /// The requests could not be sent or the answers not be read; what was
    /// applied is unknown then.
    pub fn apply_each(&mut self, changes: &[&dyn Change]) -> Result<Vec<Result<(), Error>>, Error> {
        let verdicts = self.verdicts(changes)?.into_iter();
        let each = changes.iter().zip(verdicts);
        Ok(each.map(|(change, verdict)| verdict.map_err(|r| refused(*change, r))).collect())
    }

    fn verdicts(&mut self, changes: &[&dyn Change]) -> Result<Vec<Result<(), Refusal>>, Error> {
        let Some(first) = changes.first() else { return Ok(Vec::new()) };
        let mut requests = Requests::new();
        for change in changes {
            change.encode(&mut requests);
            if let Some(fault) = requests.fault() {
                return Err(
                    Subject::new(change.operation(), change).error(Cause::Unrepresentable(fault))
                );
            }
        }
        self.socket
            .transact(&mut requests)
            .map_err(|cause| Subject::new(first.operation(), first).error(cause))
    }
}

fn refused(change: &dyn Change, refusal: Refusal) -> Error {
    Subject::new(change.operation(), &change).error(Cause::Kernel(refusal))
}
