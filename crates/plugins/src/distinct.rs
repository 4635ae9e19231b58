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
    use super::*;
    use crate::counted::{Counted, comparisons};

    #[test]
    fn the_first_of_equal_values_stays_in_its_place() {
        assert_eq!(distinct([3, 1, 3, 2, 1]), [3, 1, 2]);
        assert!(distinct(Vec::<u8>::new()).is_empty());
    }

    /// Found with long inputs of the fuzz targets: of 4,000 subnets each was compared
    /// with all before it.
    #[test]
    fn many_values_are_not_all_compared_with_each_other() {
        const COUNT: u64 = 4000;
        let values = (0..COUNT).map(|number| Counted(number * 1_234_567 % COUNT));
        assert_eq!(distinct(values).len(), 4000);
        let comparisons = comparisons();
        assert!(comparisons < COUNT * 100, "{comparisons} comparisons");
    }
}
