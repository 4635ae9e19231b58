//! One script of a runtime's whole work, for either runtime over either plugins: Go's
//! libcni and the `podwire` command, alone and in turns on the same records, with Go's
//! plugins 1.9.1 and with ours. Whoever plays a part, the story is the same.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

mod capabilities;
mod driver;
mod script;

use std::collections::BTreeMap;

use podwire_tests::Plugins;

use crate::driver::{Driver, Stage};

/// Who makes the calls, in turns.
const DRIVERS: [&[Driver]; 4] = [
    &[Driver::Podwire],
    &[Driver::Libcni],
    &[Driver::Libcni, Driver::Podwire],
    &[Driver::Podwire, Driver::Libcni],
];

/// Plays a part of the script with everybody, and compares all they saw.
#[track_caller]
fn play(part: fn(&Stage)) {
    let casts = DRIVERS.iter().flat_map(|drivers| {
        [Plugins::Ours, Plugins::Sid]
            .map(|plugins| (format!("{drivers:?} on {plugins:?}"), *drivers, plugins))
    });
    let stories: Vec<(String, BTreeMap<String, String>)> = std::thread::scope(|scope| {
        let playing: Vec<_> = casts
            .map(|(cast, drivers, plugins)| {
                let play = move || {
                    let stage = Stage::new(drivers, plugins);
                    part(&stage);
                    stage.story()
                };
                (cast, scope.spawn(play))
            })
            .collect();
        let joined = playing.into_iter().map(|(cast, story)| {
            let story = story.join();
            (cast.clone(), story.unwrap_or_else(|_| panic!("by {cast}")))
        });
        joined.collect()
    });
    let (first, story) = &stories[0];
    assert!(!story.is_empty(), "nothing was seen");
    let mut differences = Vec::new();
    for (cast, other) in &stories[1..] {
        let names = story.keys().chain(other.keys().filter(|name| !story.contains_key(*name)));
        for name in names.filter(|name| story.get(*name) != other.get(*name)) {
            let (here, there) = (story.get(name), other.get(name));
            differences.push(format!("{name}\n  {first}: {here:?}\n  {cast}: {there:?}"));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

#[test]
fn attachments_with_every_capability_are_made_checked_and_deleted_alike() {
    play(script::attachments);
}

#[test]
fn addresses_and_ranges_that_the_runtime_names_are_taken_alike() {
    play(script::addresses);
}

#[test]
fn every_capability_arrives_where_it_was_declared_and_nowhere_else() {
    play(capabilities::capabilities);
}

#[test]
fn garbage_is_collected_alike() {
    play(script::collection);
}

#[test]
fn the_version_is_chosen_and_the_switches_of_a_list_heeded_alike() {
    play(script::lists);
}

#[test]
fn what_fails_leaves_nothing_with_anybody() {
    play(script::failures);
}
