//! A number that counts how often it is compared: what something costs, without a clock.

use std::cell::Cell;
use std::cmp::Ordering;

thread_local! {
    static COMPARISONS: Cell<u64> = const { Cell::new(0) };
}

/// A number whose comparisons on this thread are counted.
#[derive(Clone, Debug)]
pub(crate) struct Counted(pub(crate) u64);

/// How often numbers were compared on this thread, which is a test's own.
pub(crate) fn comparisons() -> u64 {
    COMPARISONS.get()
}

impl Ord for Counted {
    fn cmp(&self, other: &Self) -> Ordering {
        COMPARISONS.set(COMPARISONS.get() + 1);
        self.0.cmp(&other.0)
    }
}

impl PartialOrd for Counted {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Counted {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Counted {}
