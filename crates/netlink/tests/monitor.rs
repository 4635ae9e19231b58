//! Waiting for links and addresses.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Tests fail by panicking.

mod support;

use std::time::{Duration, Instant};

use podwire_netlink::route::address::AddAddress;
use podwire_netlink::route::link::OperationalState;
use podwire_netlink::route::link_change::{ChangeLink, DeleteLink};
use podwire_netlink::route::link_new::{End, NewLink};
use podwire_netlink::route::monitor::{Monitor, Settled, Topic};
use podwire_netlink::route::{Device, Link, RouteSocket};
use support::{json, private_namespace, run};

const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(50);

fn ready() -> (RouteSocket, Link) {
    let mut socket = private_namespace();
    let link = socket.create_link(&NewLink::veth(End::new("a"), End::new("b")).up()).unwrap();
    (socket, link)
}

#[test]
fn a_port_is_awaited_until_it_is_operational() {
    let (mut socket, link) = ready();
    let seen = socket.wait_operational(link.device(), SHORT).unwrap().unwrap();
    // Older kernels take a moment to find out.
    let waiting = [OperationalState::LowerLayerDown, OperationalState::Unknown];
    assert!(waiting.contains(&seen.operational_state), "{seen:?}");
    // The loopback never says, and is ready.
    socket.apply(&ChangeLink::new(support::loopback()).up()).unwrap();
    let begun = Instant::now();
    let seen = socket.wait_operational(support::loopback(), LONG).unwrap().unwrap();
    assert_eq!(seen.operational_state, OperationalState::Unknown);
    assert!(begun.elapsed() < LONG);
    socket.apply(&ChangeLink::new(Device::named("b")).up()).unwrap();
    let seen = socket.wait_operational(link.device(), LONG).unwrap().unwrap();
    assert_eq!(seen.operational_state, OperationalState::Up);
}

#[test]
fn a_change_that_comes_later_is_heard() {
    let (mut socket, link) = ready();
    // A socket of this namespace works from any thread.
    let mut other = RouteSocket::open().unwrap();
    let mut monitor = Monitor::open(&[Topic::Links]).unwrap();
    let mut thread = None;
    let begun = Instant::now();
    let seen = monitor.wait(link.device(), LONG, || {
        // The first look is over before the change is made.
        let link = socket.link_by_name("a")?.unwrap();
        thread.get_or_insert_with(|| {
            let mut other = std::mem::replace(&mut other, RouteSocket::open().unwrap());
            std::thread::spawn(move || {
                other.apply(&ChangeLink::new(Device::named("a")).mtu(1400)).unwrap();
            })
        });
        Ok((link.mtu == 1400).then_some(link))
    });
    assert_eq!(seen.unwrap().unwrap().mtu, 1400);
    assert!(begun.elapsed() < LONG);
    thread.unwrap().join().unwrap();
}

#[test]
fn a_link_that_goes_ends_the_wait() {
    let (mut socket, link) = ready();
    socket.apply(&DeleteLink(link.device())).unwrap();
    assert_eq!(socket.wait_operational(link.device(), LONG).unwrap(), None);
}

#[test]
fn the_duplicate_check_is_awaited() {
    let (mut socket, link) = ready();
    socket.apply(&ChangeLink::new(Device::named("b")).up()).unwrap();
    socket.wait_operational(link.device(), LONG).unwrap();
    let address = "fd00::2/64".parse().unwrap();
    socket.apply(&AddAddress::new(link.device(), address)).unwrap();
    let Settled::Tentative(waiting) = socket.wait_settled(link.device(), SHORT).unwrap() else {
        panic!("the check takes a second");
    };
    assert!(waiting.iter().any(|entry| entry.address == address));
    assert_eq!(socket.wait_settled(link.device(), LONG).unwrap(), Settled::All);
    let shown = json("ip -j -6 addr show dev a tentative");
    assert!(shown.as_array().unwrap().iter().all(|link| link["addr_info"].is_null()));
}

#[test]
fn a_duplicate_is_named() {
    let (mut socket, link) = ready();
    // The other end has the address already.
    run("ip link set dev b up");
    run("ip addr add fd00::2/64 dev b nodad");
    socket.wait_operational(link.device(), LONG).unwrap();
    let address = "fd00::2/64".parse().unwrap();
    socket.apply(&AddAddress::new(link.device(), address)).unwrap();
    let settled = socket.wait_settled(link.device(), LONG).unwrap();
    let Settled::Duplicate(found) = &settled else { panic!("{settled}") };
    assert_eq!(found[0].address, address);
    assert_eq!(settled.to_string(), "in use elsewhere: fd00::2/64");
}
