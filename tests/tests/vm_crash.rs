//! Plugins killed whose kinds of link many kernels are built without; `cargo xtask crash`
//! does it for all others.
//!
//! B001, B003: what a killed plugin leaves is found by DEL, and by GC alone.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use podwire_testkit::{Feature, World};
use podwire_tests::crash::{
    Density, Job, PluginChain, Verb, assert_sound, of_rarer_kernels, run_all,
};

/// Kills of a verb, which `PODWIRE_VM_KILLS` changes: emulation is slow.
const KILLS: usize = 4;

fn kills() -> usize {
    std::env::var("PODWIRE_VM_KILLS").map_or(KILLS, |kills| kills.parse().unwrap())
}

fn kill(name: &str, feature: Feature, verb: Verb) {
    let needs = || World::new().needs(feature);
    std::thread::scope(|scope| scope.spawn(needs).join().unwrap());
    let chain: PluginChain =
        of_rarer_kernels().into_iter().find(|chain| chain.name == name).unwrap();
    let job = Job { subject: &chain, verb, density: Density::Spread(kills()) };
    let tallies = run_all(&[job], 1);
    // There may be fewer places, and beside another container there is less to do, so that
    // the last of them aren't reached.
    let wanted = tallies[0].places.min(kills()).max(1);
    assert_sound(&tallies, wanted - wanted / 3);
}

/// A test for each verb, since each takes its time.
macro_rules! killed_in_every_verb {
    ($($plugin:ident: $name:literal, $feature:ident;)+) => {$(
        mod $plugin {
            use super::{Feature, Verb, kill};

            #[test]
            fn nothing_is_left_of_a_killed_add() {
                kill($name, Feature::$feature, Verb::Add);
            }

            #[test]
            fn nothing_is_left_of_a_killed_del() {
                kill($name, Feature::$feature, Verb::Del);
            }

            #[test]
            fn nothing_is_left_of_a_killed_gc() {
                kill($name, Feature::$feature, Verb::Gc);
            }
        }
    )+};
}

killed_in_every_verb! {
    ipvlan: "ipvlan+host-local", Ipvlan;
    vlan: "vlan+host-local", Vlan;
    dummy: "dummy+host-local", Dummy;
    vrf: "bridge+vrf", Vrf;
}
