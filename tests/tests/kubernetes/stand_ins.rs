//! Scripts for other vendors' plugins: what they do with requests, results and the
//! kernel is what those are known to do. Each records its calls.

use podwire_testkit::fake::{Fake, record};

/// flannel: asks `bridge` with a configuration of its own, which it keeps for DEL,
/// where it sends no prevResult.
pub fn flannel() -> Fake {
    record("flannel").script(
        r#"
saved=/var/lib/cni/flannel/$CNI_CONTAINERID
bridge=${0%/*}/bridge
if [ "$CNI_COMMAND" = ADD ]; then
    mkdir -p /var/lib/cni/flannel
    echo '{"cniVersion":"'$version'","name":"cbr0","type":"bridge","hairpinMode":true,
"forceAddress":true,"isDefaultGateway":true,"isGateway":true,"ipMasq":false,"mtu":1450,
"ipam":{"type":"host-local","ranges":[[{"subnet":"10.42.0.0/24"}]],
"routes":[{"dst":"10.42.0.0/16"}]}}' > $saved
    exec $bridge < $saved
fi
if [ "$CNI_COMMAND" = DEL ] && [ -f $saved ]; then
    $bridge < $saved || exit 1
    rm $saved
fi"#,
    )
}

/// calico: a routed pair with an address of /32, which IPAM gives from the node's
/// own part of the cluster's addresses. Its result has no index of an interface.
pub fn calico() -> Fake {
    routed(
        "calico",
        "cali",
        r#"{"cniVersion":"VERSION","interfaces":[{"name":"HOST"}],
"ips":[{"version":"4","address":"ADDRESS/32"}]}"#,
    )
}

/// The AWS plugin: a routed pair, both ends in the result.
pub fn aws() -> Fake {
    routed(
        "aws-cni",
        "eni",
        r#"{"cniVersion":"VERSION","interfaces":[{"name":"HOST"},
{"name":"eth0","sandbox":"NETNS"}],
"ips":[{"version":"4","address":"ADDRESS/32","interface":1}],"dns":{}}"#,
    )
}

/// kube-ovn: the same to look at from outside; it asks its own IPAM within itself.
pub fn kube_ovn() -> Fake {
    routed(
        "kube-ovn",
        "ovn",
        r#"{"cniVersion":"VERSION","interfaces":[{"name":"eth0","sandbox":"NETNS"}],
"ips":[{"version":"4","address":"ADDRESS/32","gateway":"169.254.1.1","interface":0}],
"routes":[{"dst":"0.0.0.0/0","gw":"169.254.1.1"}]}"#,
    )
}

/// A plugin that makes a pair without a bridge; `prefix` begins the host end's name.
fn routed(name: &str, prefix: &str, result: &str) -> Fake {
    record(name).script(&format!("prefix={prefix}\nresult='{result}'\n{ROUTED}"))
}

/// An IPAM section whose subnet is a word of its own vendor's is filled in first.
const ROUTED: &str = r#"
host=$prefix$CNI_CONTAINERID
name=${CNI_NETNS##*/}
address=10.244.9.77
delegate() {
    printf '%s' "$request" | sed 's/usePodCidr/10.244.9.0\/24/' | "${0%/*}/host-local"
}
case "$CNI_COMMAND$request" in
    *usePodCidr*) if [ "$CNI_COMMAND" = ADD ]; then
        given=$(delegate) || { printf '%s' "$given"; exit 1; }
        address=$(printf '%s' "$given" | tr -d ' \n' | sed 's/.*"address":"\([0-9.]*\).*/\1/')
    else
        delegate || exit 1
    fi;;
esac
if [ "$CNI_COMMAND" = ADD ]; then
    ip link add $host type veth peer name $CNI_IFNAME netns $name || exit 1
    ip link set $host up
    echo 1 > /proc/sys/net/ipv4/conf/$host/proxy_arp
    ip -n $name link set $CNI_IFNAME up
    ip -n $name addr add $address/32 dev $CNI_IFNAME
    ip -n $name route add 169.254.1.1 dev $CNI_IFNAME scope link
    ip -n $name route add default via 169.254.1.1
    ip route add $address/32 dev $host
    printf '%s' "$result" | sed "s|VERSION|$version|; s|HOST|$host|; s|NETNS|$CNI_NETNS|; s|ADDRESS|$address|"
    exit 0
fi
if [ "$CNI_COMMAND" = DEL ]; then
    ip link del $host 2>/dev/null
fi
"#;

/// A chained plugin that has nothing to add to the result, as cilium's where another
/// plugin made the interface.
pub fn chained(name: &str) -> Fake {
    record(name).script(
        r#"
if [ "$CNI_COMMAND" = ADD ]; then
    printf '%s' "$request" | sed 's/.*"prevResult":\(.*\),"type":.*/\1/'
    exit 0
fi"#,
    )
}

/// multus: does for each of its delegates what a runtime does, the values of the
/// runtime handed on.
pub fn multus() -> Fake {
    record("multus").script(
        r#"
here=${0%/*}
values=$(printf '%s' "$request" | sed -n 's/.*"runtimeConfig":\({.*}\),"type".*/\1/p')
[ -n "$values" ] || values='{}'
second() {
    printf '{"cniVersion":"0.3.1","name":"cbr0","type":"portmap","runtimeConfig":%s,' "$values"
    printf '"prevResult":%s}' "$1"
}
first='{"cniVersion":"0.3.1","name":"cbr0","type":"flannel","delegate":{"isDefaultGateway":true}}'
kept=/run/world/multus-$CNI_CONTAINERID
if [ "$CNI_COMMAND" = ADD ]; then
    result=$(printf '%s' "$first" | "$here/flannel") || { printf '%s' "$result"; exit 1; }
    second "$result" > $kept
    exec "$here/portmap" < $kept
fi
if [ "$CNI_COMMAND" = DEL ] && [ -f $kept ]; then
    "$here/portmap" < $kept && printf '%s' "$first" | "$here/flannel" || exit 1
    rm $kept
fi"#,
    )
}
