//! Plugins killed at system calls all over ADD and DEL. `cargo xtask crash` does the
//! same at every one.
//!
//! B001, B002, B003: what a killed plugin leaves is found by DEL, and by GC alone.

use podwire_tests::crash::{
    Density, Job, PluginChain, Verb, assert_sound, bridge, host_device, loopback, macvlan,
    masquerade, portmap, ptp, run_all, sbr, shaping, tap, tuning, whole,
};

/// Kills one verb of a chain at about so many places.
fn kill(chain: &PluginChain, verb: Verb, kills: usize) {
    let job = Job { subject: chain, verb, density: Density::Spread(kills) };
    // Beside another container there is less to do: the last places are never reached.
    assert_sound(&run_all(&[job], 1), kills - kills / 5);
}

#[test]
fn nothing_is_left_of_a_killed_bridge_add() {
    kill(&bridge(), Verb::Add, 48);
}

#[test]
fn nothing_is_left_of_a_killed_bridge_del() {
    kill(&bridge(), Verb::Del, 32);
}

#[test]
fn nothing_is_left_of_a_killed_masquerade_add() {
    kill(&masquerade(), Verb::Add, 48);
}

#[test]
fn nothing_is_left_of_a_killed_masquerade_del() {
    kill(&masquerade(), Verb::Del, 32);
}

#[test]
fn nothing_is_left_of_a_killed_portmap_add() {
    kill(&portmap(), Verb::Add, 48);
}

#[test]
fn nothing_is_left_of_a_killed_portmap_del() {
    kill(&portmap(), Verb::Del, 32);
}

#[test]
fn nothing_is_left_of_a_killed_shaping_add() {
    kill(&shaping(), Verb::Add, 48);
}

#[test]
fn nothing_is_left_of_a_killed_shaping_del() {
    kill(&shaping(), Verb::Del, 32);
}

#[test]
fn nothing_is_left_of_a_killed_ptp_add() {
    kill(&ptp(), Verb::Add, 48);
}

#[test]
fn nothing_is_left_of_a_killed_ptp_del() {
    kill(&ptp(), Verb::Del, 32);
}

#[test]
fn nothing_is_left_of_a_killed_macvlan() {
    kill(&macvlan(), Verb::Add, 32);
    kill(&macvlan(), Verb::Del, 16);
}

#[test]
fn nothing_is_left_of_a_killed_host_device() {
    kill(&host_device(), Verb::Add, 20);
    kill(&host_device(), Verb::Del, 16);
}

#[test]
fn nothing_is_left_of_a_killed_tap() {
    kill(&tap(), Verb::Add, 16);
    kill(&tap(), Verb::Del, 12);
}

#[test]
fn nothing_is_left_of_a_killed_tuning() {
    kill(&tuning(), Verb::Add, 16);
    kill(&tuning(), Verb::Del, 12);
}

/// GC of the chain takes the interface and knows no sandbox: DEL finds the rules that
/// lead nowhere.
#[test]
fn nothing_is_left_of_a_killed_sbr() {
    kill(&sbr(), Verb::Add, 16);
    kill(&sbr(), Verb::Gc, 40);
}

#[test]
fn nothing_is_left_of_a_killed_chain_of_all() {
    kill(&whole(), Verb::Add, 24);
    kill(&whole(), Verb::Gc, 16);
}

#[test]
fn nothing_is_left_of_a_killed_loopback() {
    kill(&loopback(), Verb::Add, 12);
    kill(&loopback(), Verb::Del, 12);
}

#[test]
fn nothing_is_left_of_a_killed_collection_of_masquerade() {
    kill(&masquerade(), Verb::Gc, 24);
}

#[test]
fn nothing_is_left_of_a_killed_collection_of_portmap() {
    kill(&portmap(), Verb::Gc, 36);
}

#[test]
fn nothing_is_left_of_a_killed_collection_of_shaping() {
    kill(&shaping(), Verb::Gc, 24);
}
