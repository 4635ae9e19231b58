//! Killed at system calls all over ADD: a TAP device that stays is found by DEL.

use podwire_tests::lab::{Lab, links, reservations};

use crate::addressed;

#[test]
fn nothing_is_left_of_a_killed_add() {
    let lab = Lab::new("tap");
    let netns = lab.container("c1");
    let mut kills = 0;
    for number in (1..).step_by(5) {
        let killed = lab.call("ADD", &netns, &addressed()).kill_at(number);
        lab.call("DEL", &netns, &addressed()).run().success();
        assert!(links(&netns).is_empty(), "killed at {number}: {:?}", links(&netns));
        assert!(reservations("n").is_empty(), "killed at {number}");
        if !killed.is_killed() {
            break;
        }
        kills += 1;
    }
    assert!(kills > 10, "{kills}");
}
