//! `dummy`: addresses on an interface that leads nowhere.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing)]

use podwire_testkit::{Feature, World};
use podwire_tests::segment::{config, is_empty, link, prepared, run};
use serde_json::json;

/// B121: the host may have an interface of the same name.
#[test]
fn b121_a_whole_life_and_what_check_finds() {
    let world = World::new();
    world.needs(Feature::Dummy);
    world.exec(&["ip", "link", "add", "eth0", "type", "dummy"]);
    let container = world.netns("c1");
    let before = (world.snapshot(), container.snapshot());
    for version in ["0.3.1", "1.1.0"] {
        let mut config = config("dummy", &json!({"cniVersion": version}));
        config["dns"] = json!({"nameservers": ["192.0.2.53"]});
        config["ipam"] = json!({
            "type": "host-local",
            "ranges": [[{"subnet": "10.1.0.0/24"}], [{"subnet": "fd01::/64"}]],
            "routes": [{"dst": "10.9.0.0/16"}],
        });
        let call = |verb| prepared(world.plugin("dummy"), verb, &config, &container);
        let result = call("ADD").run().success().json();
        assert_eq!(result["dns"]["nameservers"], json!(["192.0.2.53"]));
        assert_eq!(link(&container)["linkinfo"]["info_kind"], "dummy");
        let addresses = run(&container, "ip -br addr show dev eth0").stdout;
        assert!(addresses.contains(" 10.1.0.") && addresses.contains(" fd01::"));
        call("ADD").run().error(102);
        if version >= "0.4.0" {
            assert_eq!(result["interfaces"][0]["mac"], link(&container)["address"]);
            let mut checked = config.clone();
            checked["prevResult"] = result;
            let check = || prepared(world.plugin("dummy"), "CHECK", &checked, &container).run();
            check().success();
            // Go's CHECK doesn't look at routes.
            for (change, part) in [
                ("ip route del 10.9.0.0/16", "10.9.0.0/16"),
                ("ip -6 addr flush dev eth0", "address fd01::"),
                ("ip link set eth0 down", "expected up, found down"),
            ] {
                run(&container, change);
                let error = check().error(100).to_string();
                assert!(error.contains(part), "{change}: {error}");
            }
        }
        if version == "1.1.0" {
            call("STATUS").run().success();
        }
        call("DEL").run().success();
        assert!(is_empty(&container), "{version}");
        call("DEL").run().success();
    }
    world.snapshot().since(&before.0).beyond_residue(&[]).assert_empty();
    container.snapshot().since(&before.1).assert_empty();
}
