//! Killed at system calls all over ADD and DEL: the device is never lost.

use std::path::Path;

use podwire_tests::lab::{link, reservations, with_previous};

use crate::{addressed, assert_home, lab, plain, send_home};

/// System calls between two kills.
const STEP: usize = 7;

#[test]
fn b083_a_killed_add_is_taken_back_by_del() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    let mut kills = 0;
    for number in (1..).step_by(STEP) {
        let killed = lab.call("ADD", &netns, &addressed()).kill_at(number);
        lab.call("DEL", &netns, &addressed()).run().success();
        assert_home(&lab);
        assert!(reservations("n").is_empty(), "killed at {number}");
        if !killed.is_killed() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 10, "{kills}");
}

#[test]
fn b083_a_killed_del_is_ended_by_the_next() {
    let (lab, _peer) = lab();
    let netns = lab.container_without_detection("c1");
    let mut kills = 0;
    for number in (1..).step_by(STEP) {
        let result = lab.add(&netns, &addressed());
        let call = lab.call("DEL", &netns, &with_previous(&addressed(), &result));
        let killed = call.clone().kill_at(number);
        call.run().success();
        assert_home(&lab);
        assert!(reservations("n").is_empty(), "killed at {number}");
        if !killed.is_killed() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 10, "{kills}");
}

/// Killed, and the namespace ended before the DEL: hardware is on the host then.
#[test]
fn b083_a_killed_add_whose_device_came_back_is_taken_back_by_del() {
    let (lab, _peer) = lab();
    for number in (1..).step_by(STEP * 4) {
        let netns = lab.container_without_detection("c1");
        let killed = lab.call("ADD", &netns, &addressed()).kill_at(number);
        if link(&netns, "net1").is_some() {
            send_home(&lab, &netns, "net1");
        }
        netns.remove();
        lab.call("DEL", &netns, &addressed()).run().success();
        assert_home(&lab);
        assert!(reservations("n").is_empty(), "killed at {number}");
        if !killed.is_killed() {
            break;
        }
    }
}

/// A runtime that lost its records only calls GC.
#[test]
fn gc_removes_what_a_killed_add_has_half_written() {
    let (lab, _peer) = lab();
    let half = Path::new("/run/podwire/devices/.podwire-0011223344556677.tmp");
    std::fs::create_dir_all(half.parent().unwrap()).unwrap();
    std::fs::write(half, "").unwrap();
    lab.gc(&plain(), &[]);
    assert!(!half.exists());
}
