//! What passes and what doesn't.

use podwire_testkit::probe::{ANSWER, SILENCE, ping};

use crate::lab::{BRIDGE, Lab, add, del, ip, mac, set_mac};

const FORGED: &str = "02:00:00:00:00:66";

#[test]
fn b104_a_spoofed_frame_is_dropped_and_a_real_one_passes() {
    let lab = Lab::new();
    let guarded = lab.container("c1", "10.1.0.2");
    let free = lab.container("c2", "10.1.0.3");
    add("c1", &guarded);
    let real = mac(&guarded);

    ping(&guarded, ip(BRIDGE), ANSWER).unwrap();
    ping(&guarded, ip("10.1.0.3"), ANSWER).unwrap();
    set_mac(&guarded, FORGED);
    ping(&guarded, ip(BRIDGE), SILENCE).unwrap_err();
    ping(&guarded, ip("10.1.0.3"), SILENCE).unwrap_err();
    set_mac(&guarded, &real);
    ping(&guarded, ip(BRIDGE), ANSWER).unwrap();

    // Another port is not concerned, and may use the very address.
    set_mac(&free, FORGED);
    ping(&free, ip(BRIDGE), ANSWER).unwrap();

    del("c1");
    set_mac(&guarded, "02:00:00:00:00:67");
    ping(&guarded, ip(BRIDGE), ANSWER).unwrap();
}

#[test]
fn a_guarded_port_may_not_use_the_address_of_another() {
    let lab = Lab::new();
    let first = lab.container("c1", "10.1.0.2");
    let second = lab.container("c2", "10.1.0.3");
    add("c1", &first);
    add("c2", &second);
    ping(&first, ip("10.1.0.3"), ANSWER).unwrap();
    let of_second = mac(&second);
    second.exec(&["ip", "link", "set", "eth0", "down"]);
    set_mac(&first, &of_second);
    ping(&first, ip(BRIDGE), SILENCE).unwrap_err();
}
