//! Lists without repetitions, at a cost that grows with their length and not with its
//! square: standard input has room for hundreds of thousands of entries.

use std::collections::BTreeSet;

/// Each value once, in the order of their first appearance.
pub(crate) fn distinct<T: Ord + Clone>(values: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::cmp::Ordering;

    use super::*;

    #[test]
    fn the_first_of_equal_values_stays_in_its_place() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
        assert!(distinct(Vec::<u8>::new()).is_empty());
    }

    thread_local! {
        static COMPARISONS: Cell<u64> = const { Cell::new(0) };
    }

    /// A number that counts how often it is compared.
    #[derive(Clone, Debug)]
    struct Counted(u64);

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

    /// Found with long inputs of the fuzz targets: of 4,000 subnets each was compared
    /// with all before it.
    #[test]
    fn many_values_are_not_all_compared_with_each_other() {
        const COUNT: u64 = 4000;
        let values = (0..COUNT).map(|number| Counted(number * 1_234_567 % COUNT));
        assert_eq!(distinct(values).len(), 4000);
        let comparisons = COMPARISONS.get();
        assert!(comparisons < COUNT * 100, "{comparisons} comparisons");
    }
}
