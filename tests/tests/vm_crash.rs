//! Plugins killed whose kinds of link many kernels are built without; `cargo xtask crash`
//! does it for all others.
//!
//! B001, B003: what a killed plugin leaves is found by DEL, and by GC alone.

#![allow(clippy::unwrap_used)]

use podwire_testkit::{Feature, World};
use podwire_tests::crash::{
    Density, Job, PluginChain, Verb, assert_sound, of_rarer_kernels, run_all,
};

/// Kills of each verb: emulation is slow.
const KILLS: usize = 8;

fn kill(name: &str, feature: Feature) {
    let needs = || World::new().needs(feature);
    std::thread::scope(|scope| scope.spawn(needs).join().unwrap());
    let chain: PluginChain =
        of_rarer_kernels().into_iter().find(|chain| chain.name.contains(name)).unwrap();
    let density = Density::Spread(KILLS);
    let jobs = [Verb::Add, Verb::Del, Verb::Gc].map(|verb| Job { subject: &chain, verb, density });
    assert_sound(&run_all(&jobs, 1), 3 * (KILLS - KILLS / 4));
}

#[test]
fn nothing_is_left_of_a_killed_ipvlan() {
    kill("ipvlan", Feature::Ipvlan);
}

#[test]
fn nothing_is_left_of_a_killed_vlan() {
    kill("vlan+", Feature::Vlan);
}

#[test]
fn nothing_is_left_of_a_killed_dummy() {
    kill("dummy", Feature::Dummy);
}

#[test]
fn nothing_is_left_of_a_killed_vrf() {
    kill("vrf", Feature::Vrf);
}
