//! Spans of numbers, and the walk over all their members round robin.

/// Numbers from `first` to `last`, both included; never empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) first: u128,
    pub(super) last: u128,
}

impl Span {
    pub(super) fn contains(self, number: u128) -> bool {
        self.first <= number && number <= self.last
    }

    /// How many numbers; the whole of 128 bits counts as one less.
    pub(super) fn count(self) -> u128 {
        (self.last - self.first).saturating_add(1)
    }

    /// What both have.
    pub(super) fn intersect(self, other: Self) -> Option<Self> {
        let (first, last) = (self.first.max(other.first), self.last.min(other.last));
        (first <= last).then_some(Self { first, last })
    }

    /// What is left of it beside holes, ascending.
    pub(super) fn without(self, mut holes: Vec<Self>) -> Vec<Self> {
        holes.sort_unstable_by_key(|hole| hole.first);
        let mut left = Vec::new();
        // From here on nothing is known of yet; `None` behind the greatest number.
        let mut next = Some(self.first);
        for hole in holes {
            let Some(from) = next.filter(|from| *from <= self.last) else { break };
            if let Some(last) = hole.first.checked_sub(1).filter(|last| *last >= from) {
                left.push(Self { first: from, last: last.min(self.last) });
            }
            if hole.last >= from {
                next = hole.last.checked_add(1);
            }
        }
        if let Some(first) = next.filter(|first| *first <= self.last) {
            left.push(Self { first, last: self.last });
        }
        left
    }
}

/// The walk: every member of the spans once, in the order of the groups,
/// beginning behind a given number and going round at the end.
pub(super) struct Candidates {
    spans: Vec<Span>,
    /// Index of the span `next` is in.
    at: usize,
    next: u128,
    left: u128,
}

impl Candidates {
    /// Each group is the bounds of a range and what of it is usable. `last`
    /// must be absent or within the bounds of a group.
    pub(super) fn new<'s>(
        groups: impl Iterator<Item = (Span, &'s [Span])>,
        last: Option<u128>,
    ) -> Self {
        let mut spans: Vec<Span> = Vec::new();
        // The index of the span, and the number in it, to begin with.
        let mut start = None;
        let mut passed = false;
        for (bounds, usable) in groups {
            let last_here = last.filter(|last| !passed && bounds.contains(*last));
            passed |= last_here.is_some();
            for span in usable {
                let begin = match last_here {
                    Some(last) if last >= span.last => None,
                    Some(last) => Some(span.first.max(last + 1)),
                    None => Some(span.first),
                };
                if let (None, true, Some(begin)) = (start, passed, begin) {
                    start = Some((spans.len(), begin));
                }
                spans.push(*span);
            }
        }
        let left = spans.iter().fold(0, |sum: u128, span| sum.saturating_add(span.count()));
        let (at, next) =
            start.unwrap_or((0, spans.first().map(|span| span.first).unwrap_or_default()));
        Self { spans, at, next, left }
    }
}

impl Iterator for Candidates {
    type Item = u128;

    fn next(&mut self) -> Option<u128> {
        self.left = self.left.checked_sub(1)?;
        let current = self.next;
        if current < self.spans.get(self.at)?.last {
            self.next = current + 1;
        } else {
            self.at = if self.at + 1 < self.spans.len() { self.at + 1 } else { 0 };
            self.next = self.spans.get(self.at)?.first;
        }
        Some(current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn span(first: u128, last: u128) -> Span {
        Span { first, last }
    }

    fn walk(last: Option<u128>) -> Vec<u128> {
        let groups: [(Span, &[Span]); 3] = [
            (span(10, 15), &[span(11, 12), span(14, 15)]),
            (span(1, 1), &[]),
            (span(3, 5), &[span(3, 4)]),
        ];
        Candidates::new(groups.into_iter(), last).collect()
    }

    #[test]
    fn every_member_comes_once_and_the_start_follows_the_last() {
        let all = [11, 12, 14, 15, 3, 4];
        assert_eq!(walk(None), all);
        for (last, shift) in
            [(10, 0), (11, 1), (12, 2), (13, 2), (14, 3), (15, 4), (1, 4), (3, 5), (4, 0), (5, 0)]
        {
            let mut expected = all;
            expected.rotate_left(shift);
            assert_eq!(walk(Some(last)), expected, "after {last}");
        }
    }

    #[test]
    fn the_ends_of_128_bits_do_not_overflow() {
        let whole = span(0, u128::MAX);
        let mut walk = Candidates::new([(whole, &[whole][..])].into_iter(), Some(u128::MAX - 1));
        assert_eq!(walk.next(), Some(u128::MAX));
        assert_eq!(walk.next(), Some(0));
        assert_eq!(whole.without(vec![span(0, 0)]), [span(1, u128::MAX)]);
        assert_eq!(whole.without(vec![span(u128::MAX, u128::MAX)]), [span(0, u128::MAX - 1)]);
        assert_eq!(whole.without(vec![whole]), []);
    }

    #[test]
    fn holes_split_spans() {
        let left = |hole| span(10, 20).without(vec![hole]);
        assert_eq!(left(span(12, 13)), [span(10, 11), span(14, 20)]);
        assert_eq!(left(span(1, 10)), [span(11, 20)]);
        assert_eq!(left(span(20, 99)), [span(10, 19)]);
        assert_eq!(left(span(21, 99)), [span(10, 20)]);
        assert_eq!(left(span(5, 25)), []);
    }

    #[test]
    fn nothing_to_walk_is_an_end() {
        assert_eq!(Candidates::new(std::iter::empty(), None).next(), None);
    }
    #[test]
    fn holes_may_come_in_any_order_and_overlap() {
        let left = |holes: &[Span]| span(10, 20).without(holes.to_vec());
        assert_eq!(left(&[]), [span(10, 20)]);
        assert_eq!(left(&[span(15, 16), span(12, 12)]), [span(10, 11), span(13, 14), span(17, 20)]);
        assert_eq!(left(&[span(12, 18), span(13, 14), span(18, 19)]), [span(10, 11), span(20, 20)]);
        assert_eq!(left(&[span(1, 12), span(1, 9), span(19, 30)]), [span(13, 18)]);
        // As many as standard input has room for: each is looked at once.
        let many: Vec<Span> = (1..=300_000).rev().map(|at| span(at * 2, at * 2)).collect();
        assert_eq!(span(1, 600_001).without(many).len(), 300_001);
    }
}
