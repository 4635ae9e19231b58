use super::*;
use clap::CommandFactory as _;

fn parse(line: &str) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(std::iter::once("podwire").chain(line.split(' ')))
}

fn refusal(line: &str) -> String {
    let error = parse(line).unwrap_err();
    assert_eq!(error.exit_code(), 2, "{line}: {error}");
    error.to_string()
}

#[test]
fn the_definition_holds_together() {
    Cli::command().debug_assert();
}

#[test]
fn cnitools_calls_are_taken_as_they_are() {
    for line in [
        "add n /run/netns/a",
        "check n /run/netns/a",
        "del n /run/netns/a",
        "status n /run/netns/a",
        "add -i eth1 n ./a",
    ] {
        parse(line).unwrap();
    }
}

#[test]
fn flags_stand_before_and_after_the_command() {
    let directories = |line: &str| {
        let common = parse(line).unwrap().common;
        (common.conf_dir.unwrap(), common.plugin_dir.len(), common.verbose)
    };
    let before = "--conf-dir /c --plugin-dir /a --plugin-dir /b -v del n /x";
    let after = "del n /x --conf-dir /c --plugin-dir /a --plugin-dir /b -v";
    assert_eq!(directories(before), ("/c".into(), 2, true));
    assert_eq!(directories(before), directories(after));
}

#[test]
fn names_are_checked_before_anything_is_tried() {
    for (line, part) in [
        ("add a/b /x", "invalid characters"),
        ("add n /x --container-id a/b", "containerID"),
        ("add n /x --ifname a/b", "interface name"),
        ("add n /x --ifname much-too-long-a-name", "interface name"),
        ("add n /x --args K", "invalid pair"),
        ("add n /x --cap-args []", "--cap-args"),
        ("add n", "NETNS"),
        ("add n /x --timeout 0s", "more than nothing"),
        ("add n /x --output yaml", "[possible values: text, json]"),
    ] {
        let text = refusal(line);
        assert!(text.contains(part), "{line}: {text}");
    }
    parse("del n --container-id c1").unwrap();
}

#[test]
fn gc_wants_to_be_told_exactly_one_way_what_to_keep() {
    for line in [
        "gc n",
        "gc n --dry-run",
        "gc n --all --keep-live",
        "gc n --all --keep a:eth0",
        "gc n /run/netns/a",
        "gc n --keep a",
        "gc n --keep a:",
        "gc n --keep :eth0",
        "gc n --keep",
    ] {
        refusal(line);
    }
    assert!(refusal("gc n").contains("--keep"), "{}", refusal("gc n"));
    let gc = |line: &str| match parse(line).unwrap().command {
        Command::Gc(arguments) => arguments,
        other => panic!("{other:?}"),
    };
    assert_eq!(gc("gc n --all").what(), What::Nothing);
    assert_eq!(gc("gc n --keep-live -n").what(), What::Live);
    let arguments = gc("gc n --keep a:eth0 --keep /run/netns/b --keep ./c:eth1");
    let What::These(keep) = arguments.what() else { panic!() };
    let shown: Vec<_> = keep
        .iter()
        .map(|keep| match &keep.container {
            Container::Id(id) => format!("{id} {}", keep.ifname),
            Container::Netns(path) => format!("{} {}", path.display(), keep.ifname),
        })
        .collect();
    assert_eq!(shown, ["a eth0", "/run/netns/b eth0", "./c eth1"]);
}

#[test]
fn run_separates_networks_from_the_command() {
    let run = |line: &str| match parse(line).unwrap().command {
        Command::Run(arguments) => (arguments.networks.len(), arguments.command.len()),
        other => panic!("{other:?}"),
    };
    assert_eq!(run("run a b -- ip -4 addr"), (2, 3));
    assert_eq!(run("run a -- sh"), (1, 1));
    for line in ["run -- sh", "run a", "run a --"] {
        refusal(line);
    }
}

#[test]
fn every_command_shows_examples_and_fits_a_terminal() {
    let mut root = Cli::command();
    root.build();
    for command in root.get_subcommands_mut() {
        let help = command.render_long_help().to_string();
        let name = command.get_name().to_owned();
        assert!(help.contains("Examples:"), "{name}: {help}");
        for line in help.lines() {
            assert!(line.chars().count() <= 100, "{name}: {line}");
        }
    }
    let help = Cli::command().render_long_help().to_string();
    assert!(help.contains("Exit codes:") && help.contains("NETCONFPATH"), "{help}");
}
