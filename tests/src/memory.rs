//! How much memory an ADD of the program that ships takes.

use podwire_testkit::{Shipped, World};

use crate::differential::in_every_version;

/// What an ADD may have in memory at most, in bytes.
pub const LIMIT: u64 = 3_000_000;

/// The most memory, in bytes, that the plugin's ADD had: dual stack, with its
/// delegate, in version 1.1.0.
#[track_caller]
pub fn peak_of_add(plugin: &'static str) -> u64 {
    let scenario = in_every_version(plugin).pop().expect("a version");
    let measure = move || {
        let world = World::new();
        let container = world.netns("c1");
        for command in scenario.host {
            world.exec(&command.split(' ').collect::<Vec<_>>());
        }
        let shipped = Shipped::new();
        let call = shipped.plugin(plugin).command("ADD").container("c1");
        let call = call.netns(&container).ifname("eth0").config(scenario.config);
        let (census, output) = call.counted();
        output.success();
        census.peak_memory
    };
    std::thread::spawn(measure).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Panics with the plugins whose ADD takes more than the limit.
#[track_caller]
#[allow(clippy::print_stdout)] // For who runs it by hand.
pub fn assert_small(plugins: &[&'static str]) {
    let peaks: Vec<_> = plugins.iter().map(|plugin| (*plugin, peak_of_add(plugin))).collect();
    for (plugin, peak) in &peaks {
        println!("{plugin}: {} kB", peak / 1000);
    }
    let large: Vec<_> = peaks.iter().filter(|(_, peak)| *peak > LIMIT).collect();
    assert!(large.is_empty(), "more than {LIMIT} bytes: {large:?} of {peaks:?}");
}
