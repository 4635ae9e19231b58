//! Traffic control against the kernel, with `tc` as the witness.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // Tests fail by panicking.

mod support;

use podwire_netlink::route::link_new::{End, NewKind, NewLink};
use podwire_netlink::route::tc::filter::{Match, Verdict};
use podwire_netlink::route::tc::{
    AddClass, AddQdisc, AddRedirect, DeleteFilter, DeleteQdisc, Handle, QdiscKind, Tbf, ticks,
};
use podwire_netlink::route::{Link, RouteSocket};
use support::{json, private_namespace, run};

const ROOT: Handle = Handle::new(1, 0);
const INGRESS: Handle = Handle::new(0xffff, 0);

fn ready() -> (RouteSocket, Link) {
    let mut socket = private_namespace();
    let link = socket.create_link(&NewLink::veth(End::new("a"), End::new("b")).up()).unwrap();
    (socket, link)
}

fn root(socket: &mut RouteSocket, link: &Link) -> QdiscKind {
    let qdiscs = socket.qdiscs_of(link.device()).unwrap();
    qdiscs.into_iter().find(|qdisc| qdisc.parent == Handle::ROOT).unwrap().kind
}

#[test]
fn a_token_bucket_is_added_changed_and_deleted() {
    let (mut socket, link) = ready();
    let settings = Tbf::new(1_000_000, 50_000, 25_000);
    let add = AddQdisc::root(link.device(), ROOT, QdiscKind::Tbf(settings));
    socket.apply(&add).unwrap();
    assert_eq!(root(&mut socket, &link), QdiscKind::Tbf(settings));
    let shown = json("tc -j qdisc show dev a");
    assert_eq!(shown[0]["kind"], "tbf");
    assert_eq!(shown[0]["handle"], "1:");
    assert_eq!(shown[0]["options"]["rate"], 1_000_000);
    // tc prints the burst as it derives it from the ticks.
    assert_eq!(shown[0]["options"]["burst"], 50_000);

    let error = socket.apply(&add).unwrap_err();
    assert!(error.is_exists(), "{error}");
    assert!(error.to_string().starts_with("adding qdisc tbf 1: on a: "), "{error}");
    let fast = Tbf { rate: 10_000_000_000, limit: 9_000_000, buffer: ticks(9_000_000, 1 << 33) };
    let set = AddQdisc::root(link.device(), ROOT, QdiscKind::Tbf(fast)).replace();
    socket.apply(&set).unwrap();
    assert_eq!(root(&mut socket, &link), QdiscKind::Tbf(fast));
    assert_eq!(json("tc -j qdisc show dev a")[0]["options"]["rate"], 10_000_000_000_u64);

    let delete = DeleteQdisc { device: link.device(), parent: Handle::ROOT };
    socket.apply(&delete).unwrap();
    assert_eq!(root(&mut socket, &link), QdiscKind::Other("noqueue".into()));
    assert!(socket.apply(&delete).unwrap_err().is_not_found());
}

#[test]
fn what_tc_made_is_read() {
    let (mut socket, link) = ready();
    run("tc qdisc add dev a root handle 1: tbf rate 8mbit burst 20kb latency 25ms");
    let QdiscKind::Tbf(read) = root(&mut socket, &link) else { panic!("not a tbf") };
    assert_eq!(read.rate, 1_000_000);
    assert!(read.buffer.abs_diff(ticks(20 * 1024, 1_000_000)) <= 2, "{read:?}");
    run("tc qdisc replace dev a root handle 2: htb default 30");
    run("tc class add dev a parent 2: classid 2:30 htb rate 8mbit ceil 16mbit");
    assert_eq!(root(&mut socket, &link), QdiscKind::Htb { default_class: 0x30 });
    let classes = socket.classes_of(link.device()).unwrap();
    assert_eq!(classes.len(), 1);
    assert_eq!(classes[0].handle, Handle::new(2, 0x30));
    assert_eq!((classes[0].rate, classes[0].ceiling), (1_000_000, 2_000_000));
}

#[test]
fn everything_that_comes_in_is_redirected_to_an_ifb() {
    let (mut socket, link) = ready();
    let ifb = socket.create_link(&NewLink::new(End::new("shape"), NewKind::Ifb).up()).unwrap();
    assert!(socket.filters_of(link.device(), INGRESS).unwrap().is_empty());
    let redirect = AddRedirect {
        device: link.device(),
        parent: INGRESS,
        priority: 1,
        matching: Match::Everything,
        verdict: Verdict::RedirectTo(ifb.device()),
    };
    let error = socket.apply(&redirect).unwrap_err();
    let text = "adding filter for everything redirected to shape on a ffff:";
    assert!(error.to_string().starts_with(text), "{error}");
    socket.apply_all(&[&AddQdisc::ingress(link.device()), &redirect]).unwrap();

    let filters = socket.filters_of(link.device(), INGRESS).unwrap();
    assert_eq!(filters.len(), 1, "{filters:?}");
    assert_eq!((filters[0].redirect, filters[0].priority), (Some(ifb.index), 1));
    assert_eq!((filters[0].protocol, filters[0].kind.as_str()), (3, "u32"));
    let shown = json("tc -j filter show dev a ingress");
    let shown =
        shown.as_array().unwrap().iter().find(|entry| !entry["options"]["actions"].is_null());
    let action = &shown.unwrap()["options"]["actions"][0];
    assert_eq!((&action["kind"], &action["to_dev"]), (&"mirred".into(), &"shape".into()));

    let delete = DeleteFilter { device: link.device(), parent: INGRESS, priority: 1, protocol: 3 };
    socket.apply(&delete).unwrap();
    assert!(socket.filters_of(link.device(), INGRESS).unwrap().is_empty());
    socket.apply(&DeleteQdisc { device: link.device(), parent: Handle::INGRESS }).unwrap();
    assert!(json("tc -j qdisc show dev a ingress").as_array().unwrap().is_empty());
}

#[test]
fn prefixes_are_put_into_classes() {
    let (mut socket, link) = ready();
    let device = link.device();
    let htb = AddQdisc::root(device, ROOT, QdiscKind::Htb { default_class: 0x30 });
    let class = Handle::new(1, 0x30);
    let add = AddClass {
        device,
        parent: ROOT,
        handle: class,
        rate: 1_000_000,
        ceiling: 20_000_000_000,
        burst: 20_000,
        ceiling_burst: 100_000,
    };
    socket.apply_all(&[&htb, &add]).unwrap();
    let classes = socket.classes_of(device).unwrap();
    assert_eq!((classes[0].rate, classes[0].ceiling), (1_000_000, 20_000_000_000));
    assert_eq!(classes[0].buffer, ticks(20_000, 1_000_000));
    // tc has no JSON for classes.
    assert!(
        run("tc class show dev a").contains("class htb 1:30 root prio 0 rate 8Mbit ceil 160Gbit")
    );

    let nets = [
        ("10.1.2.0/23", "0a010200/fffffe00 at 16"),
        ("0.0.0.0/0", "00000000/00000000 at 16"),
        ("2001:db8:1::/40", "20010db8/ffffffff at 24"),
    ];
    for (priority, (net, shown)) in (1..).zip(nets) {
        let matching = Match::Destination(net.parse().unwrap());
        let verdict = Verdict::Class(class);
        socket.apply(&AddRedirect { device, parent: ROOT, priority, matching, verdict }).unwrap();
        // The JSON of tc leaves the keys out.
        let text = run("tc filter show dev a");
        assert!(text.contains(&format!("match {shown}")), "{net}: {text}");
        assert_eq!(
            text.matches("match").count(),
            usize::from(priority) + usize::from(priority == 3)
        );
    }
    let matching = Match::Source("10.9.8.7/32".parse().unwrap());
    let verdict = Verdict::Class(class);
    socket.apply(&AddRedirect { device, parent: ROOT, priority: 9, matching, verdict }).unwrap();
    assert!(run("tc filter show dev a").contains("match 0a090807/ffffffff at 12"));
    let queue = Handle::new(0x30, 0);
    let fifo = QdiscKind::Bfifo { limit: 45_000 };
    socket.apply(&AddQdisc::below(device, class, queue, fifo)).unwrap();
    let shown = run("tc qdisc show dev a");
    assert!(shown.contains("qdisc bfifo 30: parent 1:30 limit 45000b"), "{shown}");
    assert!(shown.contains("direct_qlen 1000"), "{shown}");
    let filters = socket.filters_of(device, ROOT).unwrap();
    let picked = |matching| filters.iter().filter(|filter| filter.picks(matching)).count();
    for (net, _) in nets {
        let net: ipnet::IpNet = net.parse().unwrap();
        assert_eq!(picked(Match::Destination(net)), 1, "{net}");
        assert_eq!(picked(Match::Source(net)), 0, "{net}");
    }
    assert_eq!(picked(Match::Everything), 0);
    assert_eq!(filters.len(), 4);
    assert!(filters.iter().all(|filter| filter.class == Some(class)));
    assert_eq!(filters.iter().filter(|filter| filter.protocol == 0x86dd).count(), 1);
}
