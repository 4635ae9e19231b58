//! The runtime killed at system calls all over `podwire add` and `podwire del`: its
//! plugins live on for a while, and what is recorded must be enough to recover.

use podwire_tests::crash::{
    Command, Density, Job, PluginChain, Verb, assert_sound, bridge, masquerade, run_all,
};

fn kill(chain: PluginChain, verb: Verb, kills: usize) {
    let subject = Command::over(chain);
    let job = Job { subject: &subject, verb, density: Density::Spread(kills) };
    // The runtime polls: how many calls it makes is not always the same.
    assert_sound(&run_all(&[job], 1), kills - kills / 4);
}

#[test]
fn nothing_is_left_of_a_killed_podwire_add() {
    kill(bridge(), Verb::Add, 48);
}

#[test]
fn nothing_is_left_of_a_killed_podwire_del() {
    kill(masquerade(), Verb::Del, 36);
}

#[test]
fn nothing_is_left_of_a_killed_podwire_gc() {
    kill(bridge(), Verb::Gc, 24);
}
