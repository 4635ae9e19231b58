//! What CNI tutorials show: a plugin of some lines of bash under our runtime, and
//! our plugins run from a shell with variables and a here-document.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::net::IpAddr;
use std::os::unix::fs::PermissionsExt;

use podwire_runtime::Existing;
use podwire_testkit::probe::{self, ANSWER};
use podwire_tests::{Node, Plugins, wait_until};
use serde_json::{Value, json};

/// In the manner of the tutorials: a counter file for addresses, `ip` for the
/// rest, no CHECK.
const TUTORIAL: &str = r#"#!/bin/bash
exec 3>&1            # stdout is for the answer
exec 1>&2            # everything else is log
set -eu
config=$(cat)
field() { sed -n "s/.*\"$1\" *: *\"\([^\"]*\)\".*/\1/p" <<< "$config" | head -1; }
counter=/run/world/tutorial.last
case $CNI_COMMAND in
ADD)
    subnet=$(field prefix)
    last=$(cat "$counter" 2>/dev/null || echo 1)
    mine=$((last + 1))
    echo "$mine" > "$counter"
    if ! ip link show cni-demo > /dev/null 2>&1; then
        ip link add cni-demo type bridge
        ip addr add "$subnet.1/24" dev cni-demo
        ip link set cni-demo up
    fi
    host=demo$mine
    ns=${CNI_NETNS##*/}
    ip link add "$host" type veth peer name "$CNI_IFNAME" netns "$ns"
    ip link set "$host" master cni-demo up
    ip -n "$ns" addr add "$subnet.$mine/24" dev "$CNI_IFNAME"
    ip -n "$ns" link set "$CNI_IFNAME" up
    ip -n "$ns" route add default via "$subnet.1"
    mac=$(ip -n "$ns" link show "$CNI_IFNAME" | awk '/ether/ {print $2}')
    echo "attached $CNI_CONTAINERID"
    printf '{"cniVersion":"%s","interfaces":[{"name":"%s","mac":"%s","sandbox":"%s"}],' \
        "$(field cniVersion)" "$CNI_IFNAME" "$mac" "$CNI_NETNS" >&3
    printf '"ips":[{"address":"%s.%s/24","gateway":"%s.1","interface":0}]}\n' \
        "$subnet" "$mine" "$subnet" >&3
    ;;
DEL)
    [ -z "$CNI_NETNS" ] || ip -n "${CNI_NETNS##*/}" link del "$CNI_IFNAME" || true
    ;;
VERSION)
    echo '{"cniVersion":"1.0.0","supportedVersions":["0.3.1","0.4.0","1.0.0"]}' >&3
    ;;
*)
    echo "{\"code\":4,\"msg\":\"unknown CNI_COMMAND: $CNI_COMMAND\"}" >&3
    exit 1
    ;;
esac
"#;

#[test]
fn the_bash_plugin_of_the_tutorials_runs_under_our_runtime() {
    let node = Node::new(Plugins::Ours);
    let plugin = node.world.write("bin/demo.new", TUTORIAL);
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&plugin, node.world.path("bin/demo")).unwrap();
    node.install_from(&node.world.path("bin"));
    let network = node.network(&json!({
        "cniVersion": "0.4.0",
        "name": "demo",
        "plugins": [{"type": "demo", "prefix": "10.22.0"}],
    }));
    let before = node.world.snapshot();

    let (left, right) = (node.container("c1"), node.container("c2"));
    let attached = node.add(&network, &left);
    assert_eq!(attached.result.ips[0].address.to_string(), "10.22.0.2/24");
    node.add(&network, &right);
    probe::ping(&left.netns, right.address(), ANSWER).unwrap();
    // A second ADD is refused by us, whatever the plugin would say.
    let again = node.runtime().add(&network, &left.attachment(), Existing::Refuse).unwrap_err();
    assert!(again.to_string().contains("attached already"), "{again}");

    // It knows no CHECK and says so: the answer comes through whole.
    let error = node.check(&network, &left).unwrap_err();
    assert_eq!(error.code().number(), 4, "{error}");
    assert!(error.to_string().contains("unknown CNI_COMMAND: CHECK"), "{error}");

    node.del(&network, &left);
    // The namespace is gone before DEL, as when a machine was restarted.
    right.netns.remove();
    node.del(&network, &right);
    // The kernel takes a namespace's links away a little later.
    wait_until("the removal of demo3", || {
        node.world.try_exec(&["ip", "link", "show", "demo3"]).code != 0
    });
    let is_the_plugins_own = |change: &podwire_testkit::state::Change| {
        change.name().contains("cni-demo") // It never removes its bridge.
    };
    let left_over = node.world.snapshot().since(&before).without(is_the_plugins_own);
    left_over.beyond_residue(&[]).assert_empty();
}

#[test]
fn what_a_failing_script_wrote_to_standard_error_is_in_the_message() {
    let node = Node::new(Plugins::Ours);
    let text = "#!/bin/bash\ncat > /dev/null\necho 'no such bridge: br7' >&2\nexit 3\n";
    let plugin = node.world.write("bin/demo.new", text);
    std::fs::set_permissions(&plugin, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::rename(&plugin, node.world.path("bin/demo")).unwrap();
    node.install_from(&node.world.path("bin"));
    let network = node.network(&json!({
        "cniVersion": "1.0.0", "name": "demo", "plugins": [{"type": "demo"}],
    }));
    let container = node.container("c1");
    let error = node.runtime().add(&network, &container.attachment(), Existing::Refuse);
    let text = error.unwrap_err().to_string();
    for part in ["demo", "no such bridge: br7", "3"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

/// The lines that a reader types, with `$bin` for the plugin directory.
const SESSION: &str = r#"
set -eu
export CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$bin
CNI_COMMAND=ADD $bin/bridge > /run/world/result.json << EOF
{
    "cniVersion": "1.0.0",
    "name": "mynet",
    "type": "bridge",
    "bridge": "br0",
    "isGateway": true,
    "ipMasq": false,
    "ipam": {
        "type": "host-local",
        "subnet": "10.15.20.0/24",
        "routes": [ { "dst": "0.0.0.0/0" } ]
    }
}
EOF
ip netns exec c1 ping -c 1 -W 5 10.15.20.1
cat /run/world/result.json
"#;

const END: &str = r#"
set -eu
export CNI_CONTAINERID=c1 CNI_NETNS=/run/netns/c1 CNI_IFNAME=eth0 CNI_PATH=$bin
CNI_COMMAND=DEL $bin/bridge << EOF
{"cniVersion": "1.0.0", "name": "mynet", "type": "bridge", "bridge": "br0",
 "ipam": {"type": "host-local", "subnet": "10.15.20.0/24"}}
EOF
"#;

#[test]
fn our_plugins_are_run_by_hand_from_a_shell() {
    let node = Node::new(Plugins::Ours);
    let container = node.container("c1");
    let before = node.world.snapshot();
    let shell = |text: &str| {
        let text = format!("bin={}\n{text}", node.plugin_directory().display());
        node.world.exec(&["sh", "-c", &text])
    };
    let output = shell(SESSION);
    let result: Value =
        serde_json::from_slice(&std::fs::read(node.world.path("result.json")).unwrap())
            .unwrap_or_else(|error| panic!("{error}: {output:#?}"));
    assert_eq!(result["ips"][0]["address"], "10.15.20.2/24");
    assert_eq!(result["ips"][0]["interface"], 2);
    assert_eq!(result["interfaces"][2]["sandbox"], "/run/netns/c1");
    assert_eq!(container.address(), IpAddr::from([10, 15, 20, 2]));
    // DEL without prevResult and with less of the configuration, as people type it.
    let output = shell(END);
    assert_eq!(output.stdout, "");
    assert!(!container.is_attached());
    node.assert_nothing_left(&before);
}

#[test]
fn a_plugin_without_variables_says_what_it_is_and_what_it_speaks() {
    let node = Node::new(Plugins::Ours);
    let bin = node.plugin_directory();
    for name in ["bridge", "host-local", "static", "loopback"] {
        let program = bin.join(name);
        let program = program.to_str().unwrap();
        let output = node.world.exec(&["sh", "-c", &format!("{program} < /dev/null")]);
        assert_eq!(output.stdout, "");
        let first = format!("CNI {name} plugin v");
        assert!(output.stderr.starts_with(&first), "{output:#?}");
        assert!(output.stderr.contains("CNI protocol versions supported: 0.1.0"), "{output:#?}");
        // VERSION with the variables and input that libcni sends, and with none at all.
        for line in [
            format!("echo '{{\"cniVersion\":\"1.1.0\"}}' | CNI_COMMAND=VERSION {program}"),
            format!("CNI_COMMAND=VERSION {program} < /dev/null"),
        ] {
            let answer = node.world.exec(&["sh", "-c", &line]).json();
            assert_eq!(answer["cniVersion"], "1.1.0");
            let versions = answer["supportedVersions"].as_array().unwrap();
            assert_eq!(versions.len(), 7, "{versions:?}");
        }
    }
}
