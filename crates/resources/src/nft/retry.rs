//! Trying again what another process overtook.
//!
//! Who looks before it commits loses against everybody who commits meanwhile, and
//! the longer the look the more often; where many run at once, the kernel gives no
//! turn. So a call that was overtaken a few times takes one ([`Turn`]): a lock that
//! others of ours let pass before they begin. Then only those who had begun before
//! can overtake it, and programs that aren't ours.

use std::path::Path;
use std::time::{Duration, Instant};

use podwire_netlink::Error as NetlinkError;
use podwire_spec::Error;
use podwire_sys::lock::FileLock;

use crate::refused;

/// How long a transaction is tried again while others change the tables
/// underneath. Each time somebody else's went through, so the end is only
/// reached when a great many run at once that don't let us pass.
const PATIENCE: Duration = Duration::from_secs(20);

/// So often a transaction is overtaken before it takes a turn: a few times are
/// cheaper than the lock.
const TRIES_BEFORE_TURN: u32 = 3;

/// So often an object may be in use (`EBUSY`): what others are about to release is
/// free by then, and what isn't won't be for our asking.
const TRIES_IN_USE: u32 = 16;

/// How long others are let pass. Who has its turn needs milliseconds; one that was
/// stopped there must not stop everybody.
const COURTESY: Duration = Duration::from_secs(5);

/// Held by who has its turn. It is made when it is needed and removed afterwards, so
/// that letting nobody pass costs one question.
const TURNSTILE: &str = "/run/podwire/plugin/nft/turn";

/// What became of the tries of one transaction.
#[derive(Debug)]
pub struct Tries {
    until: Instant,
    overtaken: u32,
    in_use: u32,
    turn: Option<Turn>,
}

/// While it is there, others of ours wait before they begin.
#[derive(Debug)]
struct Turn(Option<FileLock>);

impl Tries {
    /// None so far.
    pub fn begin() -> Self {
        Self { until: Instant::now() + PATIENCE, overtaken: 0, in_use: 0, turn: None }
    }

    /// Whether to look and commit again after this failure, from some time on with
    /// others of ours kept out until this value is dropped.
    pub fn again(&mut self, error: &NetlinkError) -> bool {
        let left = self.until.saturating_duration_since(Instant::now());
        if !error.is_transient() || left.is_zero() {
            return false;
        }
        log::debug!("nftables changed underneath, looking again: {error}");
        if error.is_busy() {
            self.in_use += 1;
            return self.in_use < TRIES_IN_USE;
        }
        self.overtaken += 1;
        if self.overtaken >= TRIES_BEFORE_TURN && self.turn.is_none() {
            self.turn = Turn::take(Path::new(TURNSTILE), left);
        }
        true
    }
}

impl Turn {
    /// None where the lock can't be had (rootless, or a great many before us): the
    /// tries go on without.
    fn take(turnstile: &Path, wait: Duration) -> Option<Self> {
        match FileLock::exclusive(turnstile, wait) {
            Ok(lock) => Some(Self(Some(lock))),
            Err(error) => {
                log::debug!("no turn at nftables: {error}");
                None
            }
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.0.take().map(FileLock::remove) {
            log::debug!("the file of the turn stays: {error}");
        }
    }
}

/// Lets pass who was overtaken too often; before anything of nftables is looked at.
pub(crate) fn give_way() {
    if let Err(error) = FileLock::pass(Path::new(TURNSTILE), COURTESY) {
        log::debug!("not waiting for another's turn at nftables: {error}");
    }
}

/// Looks and commits again for as long as what was looked at changed before
/// the commit (`ERESTART`), up to a bound.
///
/// # Errors
/// The last failure: code 11 if it was still the same.
pub fn retrying<T>(mut attempt: impl FnMut() -> Result<T, NetlinkError>) -> Result<T, Error> {
    let mut tries = Tries::begin();
    loop {
        match attempt() {
            Err(error) if tries.again(&error) => {}
            outcome => return outcome.map_err(refused),
        }
    }
}
