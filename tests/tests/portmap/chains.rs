//! `externalSetMarkChain`: the host's own chain in `ip nat` marks what is to
//! be masqueraded.

use serde_json::json;

use crate::lab::{GATEWAY, HOST, Lab, OUTSIDE, ip, tcp, tcp_seen};

/// What kube-proxy has there.
fn make_mark_chain(lab: &Lab) {
    for tool in ["iptables-nft", "ip6tables-nft"] {
        for line in [
            "-N KUBE-MARK-MASQ",
            "-A KUBE-MARK-MASQ -j MARK --or-mark 0x4000",
            "-N KUBE-POSTROUTING",
            "-A KUBE-POSTROUTING -m mark ! --mark 0x4000/0x4000 -j RETURN",
            "-A KUBE-POSTROUTING -j MASQUERADE",
            "-A POSTROUTING -j KUBE-POSTROUTING",
            "-A PREROUTING -d 192.0.2.77,2001:db8::77 -j RETURN",
        ] {
            let line = match tool {
                "iptables-nft" => line.replace(",2001:db8::77", ""),
                _ => line.replace("192.0.2.77,", ""),
            };
            let words: Vec<_> = line.split(' ').collect();
            lab.world.exec(&[&[tool, "-t", "nat"], &words[..]].concat());
        }
    }
}

#[test]
fn the_hosts_chain_marks_and_the_host_masquerades() {
    let lab = Lab::new();
    make_mark_chain(&lab);
    let rules_of = |lab: &Lab| {
        // Without the policies: iptables makes its chains one by one.
        let rules = lab.world.exec(&["iptables-nft", "-t", "nat", "-S"]).stdout;
        let rules: Vec<_> = rules.lines().filter(|line| !line.starts_with("-P")).collect();
        rules.join("\n")
    };
    let before = rules_of(&lab);
    let (c1, c2) = (lab.container("c1", 11), lab.container("c2", 12));
    let _servers = (c1.tcp(80), c2.tcp(80));
    let config = |port: u16| {
        json!({
            "externalSetMarkChain": "KUBE-MARK-MASQ",
            "runtimeConfig": {"portMappings": tcp(port, 80)}
        })
    };
    lab.portmap("ADD", &c1, &config(8081)).run().success();
    lab.portmap("ADD", &c2, &config(8082)).run().success();
    for family in [0, 1] {
        assert_eq!(tcp_seen(&lab.outside, HOST[family], 8081), ip(OUTSIDE[family]));
        assert_eq!(tcp_seen(&c1.netns, HOST[family], 8081), ip(GATEWAY[family]), "itself");
        assert_eq!(tcp_seen(&c1.netns, HOST[family], 8082), ip(GATEWAY[family]), "neighbour");
    }
    assert_eq!(tcp_seen(lab.world.host(), "127.0.0.1", 8081), ip(GATEWAY[0]));
    // Ours is in the form that iptables lists.
    let rules = rules_of(&lab);
    for rule in [
        "-A PREROUTING -m addrtype --dst-type LOCAL",
        "-A PODWIRE-SETMARK -s 10.1.0.0/24 -p tcp",
        "-j KUBE-MARK-MASQ",
    ] {
        assert!(rules.contains(rule), "{rule} in {rules}");
    }
    assert_eq!(rules.matches("-j PODWIRE-SETMARK").count(), 2, "{rules}");
    lab.portmap("CHECK", &c1, &config(8081)).run().success();
    // Again, and the chain stays what it is.
    lab.portmap("ADD", &c1, &config(8081)).run().success();
    assert_eq!(rules_of(&lab).lines().count(), rules.lines().count());
    lab.world.exec(&["iptables-nft", "-t", "nat", "-F", "PODWIRE-SETMARK"]);
    let error = lab.portmap("CHECK", &c1, &config(8081)).run().error(100);
    assert!(error.to_string().contains("PODWIRE-SETMARK"), "{error}");
    lab.portmap("ADD", &c1, &config(8081)).run().success();
    lab.portmap("ADD", &c2, &config(8082)).run().success();
    lab.del(&c1).success();
    let rules = rules_of(&lab);
    assert!(!rules.contains("8081") && rules.contains("8082"), "{rules}");
    lab.del(&c2).success();
    assert_eq!(rules_of(&lab), before);
}
