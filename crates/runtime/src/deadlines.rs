//! How long things may take, and the clock of one operation.

use std::time::{Duration, Instant};

/// The bounds of waiting. Nothing in this crate waits without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlines {
    /// One plugin call. At its end the plugin's process group is ended.
    pub plugin: Duration,
    /// One operation: all its plugin calls together.
    pub operation: Duration,
    /// Removing what a failed ADD has made; counted from the failure, so that
    /// an ADD that ran out of time is still cleaned up (B007).
    pub rollback: Duration,
    /// Waiting for each lock.
    pub lock: Duration,
}

impl Default for Deadlines {
    /// 90 s a plugin, 180 s an operation, 90 s to roll back, 8 s for a lock:
    /// below the four minutes after which a kubelet gives up.
    fn default() -> Self {
        Self {
            plugin: Duration::from_secs(90),
            operation: Duration::from_mins(3),
            rollback: Duration::from_secs(90),
            lock: Duration::from_secs(8),
        }
    }
}

/// The time one operation has left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    end: Instant,
    plugin: Duration,
}

impl Clock {
    pub(crate) fn start(total: Duration, plugin: Duration) -> Self {
        let now = Instant::now();
        // A time beyond the clock's range is no bound; a century does as well.
        let end = now.checked_add(total).unwrap_or(now + Duration::from_hours(24 * 36_525));
        Self { end, plugin }
    }

    /// What the next plugin call may take; `None` when there is no time left.
    pub(crate) fn next_call(&self) -> Option<Duration> {
        let left = self.end.checked_duration_since(Instant::now())?;
        (!left.is_zero()).then(|| left.min(self.plugin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smaller_bound_counts() {
        let second = Duration::from_secs(1);
        assert!(Clock::start(second, second * 9).next_call().unwrap() <= second);
        assert_eq!(Clock::start(second * 9, second).next_call(), Some(second));
        assert_eq!(Clock::start(Duration::ZERO, second).next_call(), None);
        assert_eq!(Clock::start(Duration::MAX, second).next_call(), Some(second));
    }
}
