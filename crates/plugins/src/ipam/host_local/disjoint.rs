//! Spans of which no two may overlap.
//!
//! Each new one is compared with a neighbour, not with all that came before: standard
//! input has room for hundreds of thousands of ranges.

use std::collections::BTreeMap;

/// Spans that don't overlap, each with a word on where it comes from.
#[derive(Debug)]
pub(super) struct Disjoint<K, T> {
    /// The end of each and its word, by its beginning.
    spans: BTreeMap<K, (K, T)>,
}

impl<K: Ord, T: Copy> Disjoint<K, T> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { spans: BTreeMap::new() }
    }

    /// Adds the span from `first` to `last`, both included.
    ///
    /// # Errors
    /// The word of a span that overlaps it; it isn't added then.
    pub(super) fn insert(&mut self, first: K, last: K, word: T) -> Result<(), T> {
        // They don't overlap, so the last of those that begin in time ends last, too.
        match self.spans.range(..=&last).next_back() {
            Some((_, (end, earlier))) if *end >= first => Err(*earlier),
            _ => {
                self.spans.insert(first, (last, word));
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counted::{Counted, comparisons};

    #[test]
    fn any_overlap_is_found() {
        let mut spans = Disjoint::new();
        for (first, last, outcome) in [
            (10, 19, Ok(())),
            (30, 39, Ok(())),
            (20, 29, Ok(())),
            (19, 20, Err("20-29")),
            (15, 15, Err("10-19")),
            (0, 10, Err("10-19")),
            (0, 99, Err("30-39")),
            (39, 99, Err("30-39")),
            (0, 9, Ok(())),
            (40, 40, Ok(())),
        ] {
            let word: &'static str = format!("{first}-{last}").leak();
            assert_eq!(spans.insert(first, last, word), outcome, "{word}");
        }
    }

    /// Found by fuzzing with long inputs: 4,000 ranges in one set were compared with
    /// each other, 8 million times.
    #[test]
    fn many_are_not_all_compared_with_each_other() {
        const COUNT: u64 = 4000;
        let mut spans = Disjoint::new();
        for number in 0..COUNT {
            let at = number * 1_234_567 % COUNT; // In no order; each once.
            assert_eq!(spans.insert(Counted(at * 2), Counted(at * 2 + 1), ()), Ok(()));
        }
        let comparisons = comparisons();
        assert!(comparisons < COUNT * 100, "{comparisons} comparisons");
    }
}
