//! Times and counts of one call.

use std::time::Duration;

use podwire_testkit::kill::census::Census;

/// What was measured of one call by one subject.
#[derive(Debug, Default, Clone)]
pub struct Cell {
    wall: Vec<Duration>,
    processor: Vec<Duration>,
    /// What it asked of the kernel, once.
    pub counts: Option<Counts>,
}

/// What a call asks of the kernel, the programs that it starts included.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    /// Programs executed.
    pub processes: u64,
    /// System calls.
    pub system_calls: u64,
    /// Those of them that don't depend on how long a program or a thread
    /// waited for another that it started: the same in each run.
    pub steady_calls: u64,
    /// Files opened, and looked for in vain.
    pub opened: u64,
    /// Netlink messages sent.
    pub messages: u64,
    /// The largest resident memory of one process, in bytes.
    pub peak_memory: u64,
}

impl Counts {
    /// Of one traced run.
    pub fn of(census: &Census) -> Self {
        let [open, poll] = OLD;
        let sum = |old: Option<i64>, numbers: &[i64]| -> u64 {
            old.iter().chain(numbers).map(|number| census.calls(*number)).sum()
        };
        let waiting = if census.processes > 1 {
            sum(poll, &WAITING)
        } else {
            // A thread that is over already isn't waited for.
            census.calls(libc::SYS_futex)
        };
        Self {
            processes: census.processes,
            system_calls: census.system_calls(),
            steady_calls: census.system_calls() - waiting,
            opened: sum(open, &[libc::SYS_openat]),
            messages: census.messages,
            peak_memory: census.peak_memory,
        }
    }

    /// Of several calls in turn.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            processes: self.processes + other.processes,
            system_calls: self.system_calls + other.system_calls,
            steady_calls: self.steady_calls + other.steady_calls,
            opened: self.opened + other.opened,
            messages: self.messages + other.messages,
            peak_memory: self.peak_memory.max(other.peak_memory),
        }
    }
}

/// Calls that wait for a program, or read what it has written by now.
const WAITING: [i64; 7] = [
    libc::SYS_ppoll,
    libc::SYS_read,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
];

/// Calls that only some architectures have: open(2), poll(2).
#[cfg(target_arch = "x86_64")]
const OLD: [Option<i64>; 2] = [Some(libc::SYS_open), Some(libc::SYS_poll)];
#[cfg(not(target_arch = "x86_64"))]
const OLD: [Option<i64>; 2] = [None, None];

impl Cell {
    /// Adds one timed run.
    pub fn push(&mut self, wall: Duration, processor: Duration) {
        self.wall.push(wall);
        self.processor.push(processor);
    }

    /// Whether it was timed.
    pub fn is_timed(&self) -> bool {
        !self.wall.is_empty()
    }

    /// How often it was timed.
    pub fn rounds(&self) -> usize {
        self.wall.len()
    }

    /// The shortest, in milliseconds: what the work costs, undisturbed.
    pub fn best(&self) -> Option<f64> {
        self.wall.iter().min().map(milliseconds)
    }

    /// The middle one, in milliseconds: what a user sees.
    pub fn median(&self) -> Option<f64> {
        at(&self.wall, 50)
    }

    /// One in twenty is longer; in milliseconds.
    pub fn late(&self) -> Option<f64> {
        at(&self.wall, 95)
    }

    /// The middle processor time, children included; in milliseconds.
    pub fn processor(&self) -> Option<f64> {
        at(&self.processor, 50)
    }
}

fn milliseconds(time: &Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// The value that `percent` of all are not above (nearest rank).
fn at(times: &[Duration], percent: usize) -> Option<f64> {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let rank = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(rank).map(milliseconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_sorted_times() {
        let mut cell = Cell::default();
        for number in (1..=20).rev() {
            cell.push(Duration::from_millis(number), Duration::from_millis(1));
        }
        assert_eq!(cell.best(), Some(1.0));
        assert_eq!(cell.median(), Some(10.0));
        assert_eq!(cell.late(), Some(19.0));
        assert_eq!(Cell::default().median(), None);
    }

    #[test]
    fn of_several_calls_memory_is_the_largest_and_the_rest_adds_up() {
        let one = Counts { processes: 1, system_calls: 5, peak_memory: 9, ..Counts::default() };
        let both = one.and(Counts { peak_memory: 7, ..one });
        assert_eq!((both.processes, both.system_calls, both.peak_memory), (2, 10, 9));
    }
}
