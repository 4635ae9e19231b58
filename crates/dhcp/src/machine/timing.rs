//! How long to wait for answers, and between tries.

use std::time::Duration;

use super::Millis;

/// The first wait for an answer. A fresh port of a bridge may lose the first
/// message, and a server on the same segment answers within milliseconds.
const FIRST_ANSWER: Millis = 300;
/// Messages of one round that look for a server.
const TRIES: u32 = 4;
/// Messages that ask for a known address before servers are looked for anew.
const CONFIRMING_TRIES: u32 = 3;
/// The first pause between two rounds.
const FIRST_PAUSE: Millis = 2000;
/// A server that doesn't answer a renewal is asked again after half the time
/// that is left, but not sooner than after a minute (RFC 2131, section 4.4.5),
/// or a tenth of the time for leases that are that short.
const LEAST_EXTENSION: Millis = 60_000;
pub(super) const LEAST: Millis = 500;

/// The waiting times that the daemon's flags set.
#[derive(Debug, Clone, Copy)]
pub struct Timing {
    /// The longest wait for one answer.
    pub answer: Duration,
    /// The longest pause between two rounds.
    pub pause: Duration,
}

impl Timing {
    /// Messages of one kind before another way is tried.
    pub(super) const fn tries(selecting: bool) -> u32 {
        if selecting { TRIES } else { CONFIRMING_TRIES }
    }

    /// How long to wait for an answer to the message that `sent` others of its
    /// round went before.
    pub(super) fn answer(&self, sent: u32, draw: u32) -> Millis {
        let doubled = match sent {
            0 => FIRST_ANSWER,
            sent => 1000 << (sent - 1).min(16),
        };
        jitter(doubled.min(millis(self.answer)), draw)
    }

    /// How long to pause after a round that `rounds` others went before.
    pub(super) fn pause(&self, rounds: u32, draw: u32) -> Millis {
        jitter((FIRST_PAUSE << rounds.min(16)).min(millis(self.pause)), draw)
    }

    /// When to ask again whether a lease goes on, which it can until `end`.
    pub(super) fn extend(now: Millis, end: Option<Millis>) -> Millis {
        let Some(end) = end else { return now + LEAST_EXTENSION };
        let left = end.saturating_sub(now);
        let least = (left / 10).clamp(LEAST, LEAST_EXTENSION);
        (now + (left / 2).max(least)).min(end.max(now + 1))
    }
}

fn millis(duration: Duration) -> Millis {
    Millis::try_from(duration.as_millis()).unwrap_or(Millis::MAX).max(1)
}

/// A tenth more or less, so that clients that began together spread.
fn jitter(wait: Millis, draw: u32) -> Millis {
    let spread = wait / 5;
    wait - wait / 10 + ((u64::from(draw) * spread) >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing =
        Timing { answer: Duration::from_secs(3), pause: Duration::from_secs(62) };

    #[test]
    fn waits_double_up_to_their_limit() {
        let answers: Vec<_> = (0..5).map(|sent| TIMING.answer(sent, u32::MAX / 2)).collect();
        assert_eq!(answers, [299, 999, 1999, 2999, 2999]);
        assert!(TIMING.pause(0, 0) >= 1800 && TIMING.pause(0, u32::MAX) <= 2200);
        assert!(TIMING.pause(40, u32::MAX) <= 68_200);
    }

    #[test]
    fn a_lease_is_asked_for_again_after_half_of_what_is_left() {
        assert_eq!(Timing::extend(0, Some(1_000_000)), 500_000);
        assert_eq!(Timing::extend(0, Some(10_000)), 5000);
        assert_eq!(Timing::extend(0, Some(600)), 500);
        assert_eq!(Timing::extend(0, Some(100)), 100);
        assert_eq!(Timing::extend(100, Some(100)), 101);
    }
}
