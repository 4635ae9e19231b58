//! An ADD whose result nobody gets, and a limit on the size of files: errors that leave
//! nothing behind.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use podwire_testkit::{Output, World};
use podwire_tests::crash::{Command, PluginChain, Subject, Target, bridge, left, whole};
use serde_json::json;

/// Runs a shell line with the request on standard input.
fn shell(world: &World, line: &str, request: &serde_json::Value) -> Output {
    let input = world.write("request", request.to_string());
    world.try_exec(&["bash", "-c", &format!("exec <{}; {line}", input.display())])
}

/// The variables of a call.
fn variables(world: &World, target: &Target, verb: &str) -> String {
    format!(
        "CNI_COMMAND={verb} CNI_CONTAINERID={} CNI_IFNAME=eth0 CNI_NETNS={} CNI_PATH={}",
        target.container,
        target.netns.as_ref().unwrap().display(),
        world.plugin_directory().display()
    )
}

fn request(chain: &PluginChain) -> serde_json::Value {
    let mut request = chain.plugins[0].clone();
    request["cniVersion"] = json!("1.1.0");
    request["name"] = json!(chain.network);
    request
}

/// A full file, and a runtime that died and left a closed pipe.
#[test]
fn an_add_whose_answer_can_not_be_written_is_taken_back() {
    let world = World::new();
    let chain = bridge();
    let netns = world.netns("c1");
    let (before, untouched) = (world.snapshot(), netns.snapshot());
    let target = Target::new("c1", netns.path());
    let plugin = world.plugin_directory().join("bridge");
    let call = format!("{} {}", variables(&world, &target, "ADD"), plugin.display());
    let output = shell(&world, &format!("{call} >/dev/full"), &request(&chain));
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(output.stderr.contains("No space left on device"), "{output:#?}");
    let closed = shell(&world, &format!("{call} > >(exec >&-; exit 0); true"), &request(&chain));
    assert_eq!(closed.code, 0, "{closed:#?}");
    let piped = format!("exec 3> >(exit 0); wait $!; {call} >&3");
    let output = shell(&world, &piped, &request(&chain));
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(output.stderr.contains("Broken pipe"), "{output:#?}");
    left(&before, &world.snapshot(), chain.bridges).assert_empty();
    netns.snapshot().since(&untouched).assert_empty();
}

#[test]
fn the_commands_add_whose_answer_can_not_be_written_is_taken_back() {
    let world = World::new();
    let command = Command::over(whole());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let netns = world.netns("c1");
    let (before, untouched) = (world.snapshot(), netns.snapshot());
    let line = podwire
        .command_line(&["add", command.chain().network, netns.path().to_str().unwrap()])
        .join(" ");
    let output = shell(&world, &format!("{line} >/dev/full"), &json!({}));
    assert_eq!(output.code, 1, "{output:#?}");
    assert!(output.stderr.contains("standard output"), "{output:#?}");
    left(&before, &world.snapshot(), command.bridges()).assert_empty();
    netns.snapshot().since(&untouched).assert_empty();
}

/// A write beyond the limit raises SIGXFSZ, which would kill a call in the middle.
#[test]
fn a_limit_on_the_size_of_files_is_an_error_and_no_end() {
    let world = World::new();
    let chain = bridge();
    let command = Command::over(bridge());
    command.prepare(&world);
    let podwire = command.installed(world.plugin_directory());
    let netns = world.netns("c1");
    let (before, untouched) = (world.snapshot(), netns.snapshot());
    let mut target = Target::new("c1", netns.path());
    let plugin = world.plugin_directory().join("bridge");
    let call = format!("{} {}", variables(&world, &target, "ADD"), plugin.display());
    let arguments = ["add", chain.network, netns.path().to_str().unwrap()];
    for line in [call, podwire.command_line(&arguments).join(" ")] {
        let output = shell(&world, &format!("ulimit -f 0; {line} 2>&1 | cat"), &request(&chain));
        assert!(output.stdout.contains("File too large"), "{output:#?}");
        assert!(output.stdout.contains("/var/lib/cni/"), "{output:#?}");
        left(&before, &world.snapshot(), chain.bridges).assert_empty();
        netns.snapshot().since(&untouched).assert_empty();
    }
    // Without it all is well, and a DEL under it still frees the container.
    podwire.add(&mut target).unwrap();
    let arguments = ["del", chain.network, netns.path().to_str().unwrap(), "--container-id", "c1"];
    let line = podwire.command_line(&arguments).join(" ");
    let output = shell(&world, &format!("ulimit -f 0; {line}"), &json!({}));
    assert_eq!(output.code, 0, "{output:#?}");
    left(&before, &world.snapshot(), chain.bridges).assert_empty();
    netns.snapshot().since(&untouched).assert_empty();
}
