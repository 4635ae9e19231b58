//! What came of it, in numbers.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::subject::Verb;

/// What killing one verb of one subject came to.
#[derive(Debug, Clone)]
pub struct Tally {
    /// The subject.
    pub subject: String,
    /// The verb.
    pub verb: Verb,
    /// How many places there are.
    pub places: usize,
    /// How many kills were made.
    pub tried: usize,
    /// At which system calls.
    pub histogram: BTreeMap<String, usize>,
    /// In which scenes.
    pub scenes: BTreeMap<String, usize>,
    /// Which programs were killed.
    pub programs: BTreeMap<String, Score>,
    /// Everything that was not as it had to be, a description each.
    pub faults: Vec<String>,
}

impl Tally {
    /// One without kills yet.
    pub fn new(subject: &str, verb: Verb) -> Self {
        Self {
            subject: subject.to_owned(),
            verb,
            places: 0,
            tried: 0,
            histogram: BTreeMap::new(),
            scenes: BTreeMap::new(),
            programs: BTreeMap::new(),
            faults: Vec::new(),
        }
    }
}

/// Kills, and after how many of them something was not as it had to be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Score {
    /// How many kills were made.
    pub kills: usize,
    /// After how many something was wrong.
    pub leaks: usize,
}

/// Prints the tallies and panics if anything was wrong, or if fewer kills were made
/// than there should be.
#[track_caller]
pub fn assert_sound(tallies: &[Tally], kills: usize) {
    let text = table(tallies);
    let tried: usize = tallies.iter().map(|tally| tally.tried).sum();
    assert!(tried >= kills, "only {tried} kills instead of {kills}:\n{text}");
    let sound = tallies.iter().all(|tally| tally.faults.is_empty());
    assert!(sound, "leaks:\n{text}");
    // Only seen with --no-capture, or when something else fails.
    #[allow(clippy::print_stdout)]
    {
        println!("{text}");
    }
}

/// The tallies as a table, the histogram of all, and every fault.
pub fn table(tallies: &[Tally]) -> String {
    let mut text = String::new();
    let mut row = |cells: [&str; 5]| {
        let [subject, verb, places, tried, faults] = cells;
        let _ = writeln!(text, "{subject:<34} {verb:<5} {places:>7} {tried:>7} {faults:>6}");
    };
    row(["chain", "verb", "places", "kills", "leaks"]);
    let number = |count: usize| count.to_string();
    for tally in tallies {
        let numbers = [tally.places, tally.tried, tally.faults.len()].map(number);
        row([&tally.subject, tally.verb.as_str(), &numbers[0], &numbers[1], &numbers[2]]);
    }
    let tried = tallies.iter().map(|tally| tally.tried).sum();
    let faults = tallies.iter().map(|tally| tally.faults.len()).sum();
    row(["all", "", "", &number(tried), &number(faults)]);
    text += &histogram("killed at system call", tallies, |tally| &tally.histogram);
    text += &histogram("scene", tallies, |tally| &tally.scenes);
    for tally in tallies {
        for fault in &tally.faults {
            let _ = writeln!(text, "\n{}, {}: {fault}", tally.subject, tally.verb.as_str());
        }
    }
    text
}

fn histogram(
    title: &str,
    tallies: &[Tally],
    of: impl Fn(&Tally) -> &BTreeMap<String, usize>,
) -> String {
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for (name, count) in tallies.iter().flat_map(&of) {
        *sums.entry(name).or_default() += count;
    }
    let mut sorted: Vec<_> = sums.into_iter().collect();
    sorted.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let mut text = format!("\n{title}:\n");
    for (name, count) in sorted {
        let _ = writeln!(text, "  {count:>6}  {name}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_sums_up() {
        let tally = Tally {
            places: 900,
            tried: 3,
            histogram: [("openat".to_owned(), 2), ("close".to_owned(), 1)].into(),
            faults: vec!["a leak".to_owned()],
            ..Tally::new("bridge", Verb::Add)
        };
        let text = table(&[tally.clone(), tally]);
        let sum = |line: &str| line.split_whitespace().collect::<Vec<_>>() == ["all", "6", "2"];
        assert!(text.lines().any(sum), "{text}");
        assert!(text.contains("     4  openat\n       2  close\n"), "{text}");
        assert_eq!(text.matches("bridge, ADD: a leak").count(), 2);
    }
}
