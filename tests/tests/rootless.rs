//! The demo's chain without root: in a user namespace, on a kernel whose parameters
//! may not be written, and with IPv6 switched off.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use podwire_testkit::{Output, World};

/// What every scenario begins with. `$bin` holds the programs.
const PRELUDE: &str = r#"
set -eu
export PATH=$bin:/usr/sbin:/usr/bin:/sbin:/bin
fail() { echo "FAILED: $*" >&2; exit 1; }
[ "$(id -u)" = 0 ] || fail "the user namespace maps no root"
mount -t tmpfs t /run/netns
mount -t tmpfs t /var/lib/cni
ip link set lo up
podwire() { command podwire --plugin-dir "$bin" --conf-dir "$bin" "$@"; }
ports='{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]}'
container() { ip netns add "$1"; ip -n "$1" link set lo up; }
add() { podwire add podnet "/run/netns/$1" --container-id "$@" > /dev/null; }
check() { podwire check podnet "/run/netns/$1" --container-id "$@" > /dev/null; }
del() { podwire del podnet "/run/netns/$1" --container-id "$@" > /dev/null; }
serve() {
    ip netns exec c1 python3 -c '
import socket
server = socket.create_server(("", 80))
print("ready", flush=True)
while True:
    peer, address = server.accept()
    peer.sendall(b"hello")
    peer.close()
' > "$TMPDIR/served" &
    server=$!
    until grep -q ready "$TMPDIR/served"; do kill -0 $server; done
}
fetch() {
    ip netns exec "$1" python3 -c '
import socket, sys
print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).recv(9).decode())
' "$2" "$3"
}
"#;

/// Two containers, each with the other, one behind a host port, until nothing is left.
const LIFE: &str = r#"
add c1 --cap-args "$ports"
add c2
check c1
check c2
ip netns exec c2 ping -c 1 -W 5 10.89.0.2 > /dev/null || fail "no answer"
serve
[ "$(fetch c2 10.89.0.1 8080)" = hello ] || fail "the host port leads nowhere"
kill $server
podwire list
podwire status podnet > /dev/null
del c1
del c2
podwire gc podnet --all > /dev/null
[ -z "$(ip -o link show type veth)" ] || fail "links are left: $(ip -o link show type veth)"
left=$(ls /var/lib/cni/networks/podnet | grep -v -e lock -e last_reserved_ip || true)
[ -z "$left" ] || fail "reservations are left: $left"
[ -z "$(ls -A /var/lib/cni/results 2>/dev/null)" ] || fail "records are left"
echo PASSED
"#;

/// The configuration of the README's demo.
const NETWORK: &str = include_str!("../../examples/podnet.conflist");

/// `podwire` itself, built with the workspace beside the tests.
fn command_program() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let program = own.ancestors().nth(2).unwrap().join("podwire");
    assert!(program.is_file(), "{} is not built; run: cargo build -p podwire", program.display());
    program
}

/// Runs a script as root of a user namespace, of an ordinary user where this machine
/// lets ordinary users have one.
fn rootless(network: &str, script: &str) -> Output {
    let world = World::new();
    let bin = world.path("bin");
    std::fs::create_dir(&bin).unwrap();
    let program = world.plugin_directory().join("podwire-cni");
    std::fs::copy(&program, bin.join("podwire-cni")).unwrap();
    for name in ["bridge", "host-local", "portmap", "loopback"] {
        std::fs::hard_link(bin.join("podwire-cni"), bin.join(name)).unwrap();
    }
    std::fs::copy(command_program(), bin.join("podwire")).unwrap();
    std::fs::write(bin.join("podnet.conflist"), network).unwrap();
    let temporary = world.path("tmp");
    std::fs::create_dir(&temporary).unwrap();
    std::fs::set_permissions(&temporary, std::fs::Permissions::from_mode(0o1777)).unwrap();
    let text = format!(
        "bin={}\nexport TMPDIR={}\n{PRELUDE}\n{script}",
        bin.display(),
        temporary.display()
    );
    let file = world.write("script", text);
    let file = file.to_str().unwrap();
    let ordinary =
        ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "unshare", "-Urnm"];
    let allowed = world.try_exec(&[&ordinary[..], &["true"]].concat()).code == 0;
    let start = if allowed { &ordinary[..] } else { &ordinary[6..] };
    world.try_exec(&[start, &["sh", file]].concat())
}

#[track_caller]
fn passes(network: &str, script: &str) {
    let output = rootless(network, script);
    assert!(output.code == 0 && output.stdout.ends_with("PASSED\n"), "{output:#?}");
}

#[test]
fn the_chain_of_the_demo_passes_without_root() {
    passes(NETWORK, &format!("container c1; container c2\n{LIFE}"));
}

/// Puts the kernel parameters as a careful administrator does before `/proc/sys` is
/// made read-only, in the node's namespace and in the containers'.
const RIGHT_VALUES: &str = r"
container c1
container c2
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1
sysctl -qw net.ipv4.conf.default.route_localnet=1 net.ipv6.conf.default.accept_ra=0
for c in c1 c2; do
    ip netns exec $c sysctl -qw net.ipv4.conf.default.arp_notify=1 \
        net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.keep_addr_on_down=1 \
        net.ipv6.conf.default.accept_ra=0
done
";

/// As container engines mount it.
const READ_ONLY: &str = r"
mount --bind /proc/sys /proc/sys
mount -o remount,bind,ro /proc/sys
sysctl -qw net.ipv4.ip_forward=1 2> /dev/null && fail '/proc/sys can be written'
";

#[test]
fn the_chain_passes_with_read_only_parameters_that_are_right() {
    passes(NETWORK, &format!("{RIGHT_VALUES}\n{READ_ONLY}\n{LIFE}"));
}

#[test]
fn a_parameter_that_is_wrong_and_read_only_is_named_and_nothing_is_left() {
    let script = format!(
        r#"
container c1
{READ_ONLY}
if podwire add podnet /run/netns/c1 --container-id c1 2> "$TMPDIR/error"; then
    fail "it was added"
fi
grep -q -e ip_forward -e forwarding "$TMPDIR/error" || fail "$(cat "$TMPDIR/error")"
grep -qi 'read-only' "$TMPDIR/error" || fail "$(cat "$TMPDIR/error")"
[ -z "$(ip -o link show type veth)" ] || fail "links are left"
[ -z "$(ip -n c1 -o link show dev eth0 2>/dev/null)" ] || fail "eth0 is left"
left=$(ls /var/lib/cni/networks/podnet | grep -v -e lock -e last_reserved_ip || true)
[ -z "$left" ] || fail "reservations are left: $left"
echo PASSED
"#
    );
    passes(NETWORK, &script);
}

/// Switches IPv6 off in the calling namespace, for what is there and what comes.
const WITHOUT_IPV6: &str = r"
sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
";

#[test]
fn the_chain_passes_with_ipv6_switched_off_on_the_host() {
    let single =
        NETWORK.replace(r#"[{ "subnet": "10.89.0.0/24" }],"#, r#"[{ "subnet": "10.89.0.0/24" }]"#);
    let single = single.replace(r#"[{ "subnet": "fd89::/64" }]"#, "");
    let single = single.replace(r#"{ "dst": "0.0.0.0/0" },"#, r#"{ "dst": "0.0.0.0/0" }"#);
    let single = single.replace(r#"{ "dst": "::/0" }"#, "");
    let script = format!("{WITHOUT_IPV6}\ncontainer c1\ncontainer c2\n{LIFE}");
    passes(&single, &script);
    passes(NETWORK, &script);
}

#[test]
fn the_chain_passes_with_ipv6_switched_off_in_the_containers_too() {
    let off = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1";
    let script = format!(
        "{WITHOUT_IPV6}\ncontainer c1\ncontainer c2\n\
         ip netns exec c1 {off}\nip netns exec c2 {off}\n{LIFE}"
    );
    passes(NETWORK, &script);
}

#[test]
fn a_command_is_run_in_a_namespace_of_its_own_without_root() {
    // It keeps its files below /run, which an ordinary user must bring along.
    let script = r#"
refusal=$(podwire run podnet -- true 2>&1) && fail "it ran without /run"
case $refusal in *"/run/podwire/run: Permission denied"*) ;; *) fail "$refusal" ;; esac
mount -t tmpfs t /mnt
cp -r "$bin" /mnt/bin
bin=/mnt/bin
export PATH=$bin:$PATH
mount -t tmpfs t /run
addresses=$(podwire run podnet -- ip -4 -o addr show dev eth0)
case $addresses in *10.89.0.*) ;; *) fail "$addresses" ;; esac
[ -z "$(ip -o link show type veth)" ] || fail "links are left"
echo PASSED
"#;
    passes(NETWORK, script);
}
