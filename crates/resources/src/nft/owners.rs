//! The owners set of a table: which of its objects belong to an attachment.
//!
//! DEL and garbage collection know an owner mark and nothing else. Instead of
//! listing every element of every map, they look the mark up here. An entry's
//! key is the mark and a running number, its comment a few words of text; what
//! the words mean is up to the plugin that wrote them. Several entries hold
//! what doesn't fit one comment; the first one says how many there are.
//!
//! The key has the types `ipv6_addr . mark`: 16 and 4 bytes that the `nft`
//! command can print and read back, which it can't for bare numbers.

use std::collections::BTreeSet;

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Data, DataType, Element, NftSocket, Set, TableId};
use podwire_plugin::OwnerMark;

use super::COMMENT_LIMIT;

/// The name of the set in every table that has one.
pub const NAME: &str = "owners";

/// Entries of one attachment at most: 1,000 mappings take about 200.
const ENTRY_LIMIT: usize = 4096;

/// The set itself.
pub fn set(table: TableId<'_>) -> Set {
    Set::new(table.set(NAME), &[DataType::Ipv6Address, DataType::Mark])
        .with_comment("whose the elements are")
}

/// The same as a map, for tables that count: an entry leads to the chain that
/// serves its attachment, though no packet is looked up in it. The kernel counts
/// what leads to a chain, so whether anybody is left shows without listing them.
pub fn counted(table: TableId<'_>) -> Set {
    Set::verdict_map(table.set(NAME), &[DataType::Ipv6Address, DataType::Mark])
        .with_comment("whose the elements are")
}

fn key(mark: &OwnerMark, number: usize) -> Data {
    Data::new().field(&mark.bytes()).mark(u32::try_from(number).unwrap_or(u32::MAX))
}

fn mark_of(element: &Element) -> Option<OwnerMark> {
    OwnerMark::from_bytes(element.key.as_bytes().get(..16)?)
}

/// The entries that write the words down. A word holds no blanks; one longer
/// than a comment is cut.
pub fn entries(mark: &OwnerMark, words: &[String]) -> Vec<Element> {
    // Room for the count in front of the first entry's words.
    let mut texts = vec![String::with_capacity(COMMENT_LIMIT)];
    let mut room = COMMENT_LIMIT - 5;
    for word in words {
        let word = super::cut(word, COMMENT_LIMIT - 5);
        if let Some(text) = texts.last_mut()
            && text.len() + 1 + word.len() <= room
        {
            if !text.is_empty() {
                text.push(' ');
            }
            text.push_str(word);
            continue;
        }
        room = COMMENT_LIMIT;
        texts.push(word.to_owned());
    }
    let count = texts.len();
    let number = |(index, text): (usize, String)| {
        let text = if index == 0 { format!("{count} {text}") } else { text };
        Element::new(key(mark, index)).with_comment(text.trim_end())
    };
    texts.into_iter().enumerate().map(number).collect()
}

/// What is written down about one attachment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// The words, in the order written.
    pub words: Vec<String>,
    /// The entries that hold them, to be deleted with what they name.
    pub entries: Vec<Element>,
}

impl Record {
    /// The rest of the first word that begins so.
    pub fn value(&self, prefix: &str) -> Option<&str> {
        self.words.iter().find_map(|word| word.strip_prefix(prefix))
    }
}

/// What is written down about an attachment; `None` if nothing is, also when
/// there is no such table. One question to the kernel for a small record, two
/// for none.
pub fn read(
    socket: &mut NftSocket,
    table: TableId<'_>,
    mark: &OwnerMark,
) -> Result<Option<Record>, NetlinkError> {
    let mut record = Record::default();
    let mut count = 1;
    let mut number = 0;
    while number < count {
        let wanted = Element::new(key(mark, number));
        match socket.element(table.set(NAME), &wanted)? {
            Some(found) => {
                let text = found.comment().unwrap_or_default();
                let mut words = text.split_ascii_whitespace();
                if number == 0 {
                    let written = words.next().and_then(|word| word.parse::<usize>().ok());
                    count = written.unwrap_or(1).min(ENTRY_LIMIT);
                }
                record.words.extend(words.map(str::to_owned));
                record.entries.push(wanted);
            }
            // Somebody took an entry out by hand: the others still count.
            None if number > 0 => {}
            None => return Ok(None),
        }
        number += 1;
    }
    Ok(Some(record))
}

/// Every owner that the table has entries of; none if there is no such table.
pub fn all(
    socket: &mut NftSocket,
    table: TableId<'_>,
) -> Result<BTreeSet<OwnerMark>, NetlinkError> {
    Ok(socket.elements(table.set(NAME))?.iter().filter_map(mark_of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use podwire_spec::id::NetworkName;

    fn mark() -> OwnerMark {
        OwnerMark::new(&NetworkName::parse("n1").unwrap(), "c1", "eth0")
    }

    #[test]
    fn few_words_are_one_entry_with_the_mark_for_its_key() {
        let words = ["n1/c1/eth0".to_owned(), "tcp:8080:80".to_owned()];
        let entries = entries(&mark(), &words);
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].comment().unwrap(), "1 n1/c1/eth0 tcp:8080:80");
        assert_eq!(entries[0].key.as_bytes().len(), 20);
        assert_eq!(mark_of(&entries[0]), Some(mark()));
    }

    #[test]
    fn many_words_are_spread_and_every_comment_fits() {
        let words: Vec<_> = (1..=1000).map(|port| format!("tcp:{port}:80")).collect();
        let entries = entries(&mark(), &words);
        let texts: Vec<_> = entries.iter().map(|entry| entry.comment().unwrap()).collect();
        assert!(texts.iter().all(|text| text.len() <= COMMENT_LIMIT));
        let joined = texts.join(" ");
        let mut read = joined.split(' ');
        assert_eq!(read.next().unwrap().parse::<usize>().unwrap(), entries.len());
        assert!(read.eq(words.iter().map(String::as_str)));
        let keys: BTreeSet<_> = entries.iter().map(|entry| entry.key.clone()).collect();
        assert_eq!(keys.len(), entries.len());
    }

    #[test]
    fn no_words_and_long_words_are_entries_too() {
        assert_eq!(entries(&mark(), &[])[0].comment().unwrap(), "1");
        let long = [String::from("x").repeat(500)];
        assert!(entries(&mark(), &long).iter().all(|entry| entry.comment().unwrap().len() <= 127));
    }
}
