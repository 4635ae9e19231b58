//! Leases on the disk: full, unreadable, of another boot.

use podwire_tests::crash::Boots;
use podwire_tests::dhcp::{Event, Lab, Server, Settings, Side, Software, Wiring, address_in};
use podwire_tests::lab::with;
use serde_json::json;

const DATA: &str = "/var/lib/cni/podwire/dhcp";

/// No lease without a record: an address that can't be remembered isn't handed
/// out, and the server has it back.
#[test]
fn a_full_disk_fails_the_add_and_loses_no_address() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    std::fs::create_dir_all(DATA).unwrap();
    lab.host(&format!("mount -t tmpfs -o size=64k,mode=0700 t {DATA}"));
    let _daemon = lab.daemon(Side::Ours, &["-resendtimeout", "3s"]);
    let filler = format!("{DATA}/filler");
    lab.world.try_exec(&["dd", "if=/dev/zero", &format!("of={filler}"), "bs=4k"]).failure();
    let container = lab.container("c1");
    let error = lab.call("ADD", &container, &lab.config()).run().failure().json();
    assert!(error.to_string().contains(DATA), "{error:#}");
    assert!(podwire_tests::segment::is_empty(&container));
    server.wait_for_leases(0);
    // And with room again it works.
    std::fs::remove_file(filler).unwrap();
    let address = address_in(&lab.add(&container, &lab.config()));
    server.acknowledged(0, address);
}

#[test]
fn files_that_are_no_leases_are_set_aside() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let mut daemon = lab.daemon(Side::Ours, &[]);
    let address = address_in(&lab.add(&lab.container("c1"), &lab.config()));
    daemon.kill();
    let leases = format!("{DATA}/leases");
    let whole = std::fs::read_dir(&leases).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(whole).unwrap();
    std::fs::write(format!("{leases}/torn.json"), &whole[..whole.len() / 2]).unwrap();
    std::fs::write(format!("{leases}/empty.json"), "").unwrap();
    std::fs::write(format!("{leases}/large.json"), vec![b' '; 1 << 20]).unwrap();
    let mark = server.mark();
    daemon.resume();
    server.acknowledged(mark, address);
    let set_aside = std::fs::read_dir(format!("{DATA}/quarantine")).unwrap().count();
    assert_eq!(set_aside, 3, "{}", daemon.log().text());
}

/// Containers don't outlive a boot, so their leases aren't renewed but given back.
#[test]
fn leases_of_an_earlier_boot_are_given_back() {
    let lab = Lab::new(Wiring::Bridge);
    let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
    let boots = Boots::new(&lab.world);
    let mut daemon = lab.daemon(Side::Ours, &[]);
    let addresses = ["c1", "c2"].map(|id| address_in(&lab.add(&lab.container(id), &lab.config())));
    daemon.kill();
    boots.reboot();
    let mark = server.mark();
    daemon.resume();
    for address in addresses {
        server.released(mark, address);
        assert_eq!(server.count(mark, Event::Acknowledged(address)), 0);
    }
    server.wait_for_leases(0);
}

/// A container whose namespace is gone before its DEL: the server hears of it from
/// the host, at once.
#[test]
fn the_server_hears_of_a_del_without_a_namespace() {
    for wiring in [Wiring::Bridge, Wiring::Macvlan] {
        let lab = Lab::new(wiring);
        let server = Server::start(&lab.server, Software::Dnsmasq, Settings::default());
        let _daemon = lab.daemon(Side::Ours, &[]);
        let container = lab.container("c1");
        let config = lab.config();
        let result = lab.add(&container, &config);
        container.remove();
        let mark = server.mark();
        let config = with(&config, &json!({"prevResult": result}));
        lab.call("DEL", &container, &config).env("CNI_NETNS", "").run().success();
        server.released(mark, address_in(&result));
        server.wait_for_leases(0);
    }
}
