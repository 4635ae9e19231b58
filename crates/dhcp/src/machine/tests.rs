//! The whole life of a lease, on paper.

use std::time::Duration;

use super::*;
use crate::terms::tests::reply;

const TIMING: Timing = Timing { answer: Duration::from_secs(10), pause: Duration::from_secs(62) };
const ADDRESS: [u8; 4] = [10, 0, 0, 9];

fn identity() -> Identity {
    Identity {
        hardware: [2, 0, 0, 0, 0, 9],
        client: b"\0c1/n1/eth0".to_vec(),
        requested: vec![3, 1],
        provided: vec![(12, b"host".to_vec())],
        broadcast: true,
    }
}

fn sent(actions: &[Action]) -> Option<&Message> {
    actions.iter().find_map(|action| match action {
        Action::Broadcast { message, .. } | Action::Unicast { message, .. } => Some(message),
        _ => None,
    })
}

fn agreement(actions: &[Action]) -> Option<&Agreement> {
    actions.iter().find_map(|action| match action {
        Action::Bound(agreement) => Some(agreement),
        _ => None,
    })
}

fn answer(machine: &Machine, kind: Kind, address: [u8; 4]) -> Message {
    let mut message = reply(kind, address);
    message.transaction = machine.transaction;
    message
}

fn fresh(give_up_at: Option<Millis>) -> Machine {
    Machine::acquire(identity(), TIMING, 1, None, 0, give_up_at)
}

/// A machine that holds a lease of 100 s since moment 1000.
fn bound() -> Machine {
    let mut machine = fresh(Some(60_000));
    machine.wake(1000);
    machine.receive(&answer(&machine, Kind::Offer, ADDRESS), 1000);
    let actions = machine.receive(&answer(&machine, Kind::Ack, ADDRESS), 1001);
    assert_eq!(agreement(&actions).unwrap().since, 1000);
    machine
}

#[test]
fn an_address_is_found_taken_and_held() {
    let mut machine = fresh(Some(60_000));
    assert_eq!(machine.due(), Some(0));
    let actions = machine.wake(0);
    let discover = sent(&actions).unwrap();
    assert_eq!((discover.kind, discover.broadcast), (Kind::Discover, true));
    assert_eq!(discover.options.get(61), Some(&b"\0c1/n1/eth0"[..]));
    assert_eq!(discover.options.get(55), Some(&[3, 1][..]));
    assert_eq!(discover.options.get(12), Some(&b"host"[..]));
    assert_eq!(machine.listening(), Listening::Segment);
    let actions = machine.receive(&answer(&machine, Kind::Offer, ADDRESS), 5);
    let request = sent(&actions).unwrap();
    assert_eq!(request.options.address(50), Some(ADDRESS.into()));
    assert_eq!(request.options.address(54), Some([10, 0, 0, 1].into()));
    let actions = machine.receive(&answer(&machine, Kind::Ack, ADDRESS), 9);
    let agreement = agreement(&actions).unwrap();
    assert_eq!((agreement.by, agreement.since), (Way::Acquired, 5));
    assert_eq!(machine.listening(), Listening::Nowhere);
    assert_eq!(machine.due(), Some(50_005));
}

#[test]
fn answers_to_something_else_change_nothing() {
    let mut machine = fresh(None);
    machine.wake(0);
    let good = answer(&machine, Kind::Offer, ADDRESS);
    let mut others = vec![good.clone(), good.clone(), good.clone(), good.clone()];
    others[0].transaction ^= 1;
    others[1].hardware[5] ^= 1;
    others[2].direction = Direction::Request;
    others[3].kind = Kind::Ack;
    for other in &others {
        assert_eq!(machine.receive(other, 1), []);
    }
    machine.receive(&good, 2);
    let ack = answer(&machine, Kind::Ack, ADDRESS);
    let (mut of_another, mut refusal) = (ack.clone(), ack.clone());
    of_another.options.set(code::SERVER_IDENTIFIER, vec![10, 0, 0, 66]);
    refusal.kind = Kind::Nak;
    refusal.options.set(code::SERVER_IDENTIFIER, vec![10, 0, 0, 66]);
    for other in [of_another, refusal, answer(&machine, Kind::Ack, [10, 0, 0, 10])] {
        assert_eq!(machine.receive(&other, 3), []);
    }
    assert!(agreement(&machine.receive(&ack, 4)).is_some());
    assert_eq!(machine.receive(&ack, 5), [], "nothing was asked");
}

#[test]
fn an_unusable_offer_is_passed_over_and_told_in_the_end() {
    let mut machine = fresh(Some(20_000));
    machine.wake(0);
    let mut offer = answer(&machine, Kind::Offer, ADDRESS);
    offer.options.remove(code::SUBNET_MASK);
    assert_eq!(machine.receive(&offer, 1), []);
    let mut now = 0;
    let reason = loop {
        now = machine.due().unwrap().max(now);
        if let Some(Action::GaveUp { reason }) = machine.wake(now).pop() {
            break reason;
        }
    };
    assert_eq!(now, 20_000);
    assert!(reason.contains("Subnet Mask not found"), "{reason}");
    assert_eq!(machine.due(), None);
}

#[test]
fn silence_is_asked_again_in_rounds() {
    let mut machine = fresh(None);
    let (mut moments, mut transactions) = (Vec::new(), std::collections::BTreeSet::new());
    while moments.len() < 12 {
        let now = machine.due().unwrap();
        if let Some(message) = sent(&machine.wake(now)) {
            moments.push(now);
            transactions.insert(message.transaction);
        }
    }
    assert!(moments[1] < 400, "the first is repeated soon: {moments:?}");
    assert!(moments[11] < 60_000, "{moments:?}");
    assert_eq!(transactions.len(), 3, "one a round");
}

#[test]
fn it_renews_by_the_server_then_by_any_then_loses_the_address() {
    let mut machine = bound();
    let renewal = machine.due().unwrap();
    assert_eq!(renewal, 51_000);
    let actions = machine.wake(renewal);
    let Action::Unicast { message, source, server } = &actions[0] else { panic!("{actions:?}") };
    assert_eq!((*source, *server), (ADDRESS.into(), Ipv4Addr::new(10, 0, 0, 1)));
    assert_eq!((message.client, message.broadcast), (*source, false));
    assert_eq!((message.options.get(50), message.options.get(54)), (None, None));
    assert_eq!(machine.listening(), Listening::Address { address: *source });
    let mut rebound = 0;
    let lost = loop {
        let now = machine.due().unwrap();
        let actions = machine.wake(now);
        match actions.as_slice() {
            [Action::Unicast { .. }] => assert!(now < 89_000, "{now}"),
            [Action::Broadcast { message, source }] => {
                assert!(now >= 89_000, "{now}");
                assert_eq!((message.client, *source), (ADDRESS.into(), ADDRESS.into()));
                rebound += 1;
            }
            _ => break (now, actions),
        }
    };
    assert!(rebound >= 3, "{rebound}");
    assert_eq!(lost.0, 101_000);
    assert!(matches!(&lost.1[0], Action::Lost { reason: Loss::Expired, .. }));
    let discover = sent(&lost.1).unwrap();
    assert_eq!(discover.kind, Kind::Discover);
    assert_eq!(discover.options.address(50), Some(ADDRESS.into()), "the same one is asked for");
}

#[test]
fn a_renewal_that_is_answered_begins_the_lease_anew() {
    for (moment, way) in [(51_000, Way::Renewed), (90_000, Way::Rebound)] {
        let mut machine = bound();
        machine.wake(moment);
        let mut ack = answer(&machine, Kind::Ack, [10, 0, 0, 77]);
        ack.options.remove(code::SUBNET_MASK);
        let actions = machine.receive(&ack, moment + 5);
        let agreement = agreement(&actions).unwrap();
        assert_eq!((agreement.by, agreement.since), (way, moment));
        assert_eq!(agreement.terms.network().unwrap().to_string(), "10.0.0.77/24");
        assert_eq!(agreement.before.as_ref().unwrap().address, Ipv4Addr::from(ADDRESS));
        assert_eq!(machine.due(), Some(moment + 50_000));
    }
}

#[test]
fn a_refusal_loses_the_address_at_once() {
    let mut machine = bound();
    machine.wake(51_000);
    let actions = machine.receive(&answer(&machine, Kind::Nak, [0; 4]), 51_001);
    assert!(matches!(&actions[0], Action::Lost { reason: Loss::Refused, .. }));
    let discover = sent(&actions).unwrap();
    assert_eq!((discover.kind, discover.options.get(50)), (Kind::Discover, None));
    let offer = answer(&machine, Kind::Offer, [10, 9, 9, 9]);
    machine.receive(&offer, 51_002);
    let actions = machine.receive(&answer(&machine, Kind::Ack, [10, 9, 9, 9]), 51_003);
    assert_eq!(agreement(&actions).unwrap().by, Way::Acquired);
}

#[test]
fn a_known_address_is_confirmed_or_another_is_looked_for() {
    let known = || Machine::acquire(identity(), TIMING, 1, Some(ADDRESS.into()), 0, Some(60_000));
    let mut machine = known();
    let actions = machine.wake(0);
    let request = sent(&actions).unwrap();
    assert_eq!((request.kind, request.client), (Kind::Request, Ipv4Addr::UNSPECIFIED));
    assert_eq!(request.options.address(50), Some(ADDRESS.into()));
    assert_eq!(request.options.get(54), None);
    assert!(agreement(&machine.receive(&answer(&machine, Kind::Ack, ADDRESS), 1)).is_some());

    let mut silent = known();
    let kinds: Vec<_> = std::iter::from_fn(|| {
        let now = silent.due()?;
        sent(&silent.wake(now)).map(|message| message.kind)
    })
    .take(4)
    .collect();
    assert_eq!(kinds, [Kind::Request, Kind::Request, Kind::Request, Kind::Discover]);

    let mut refused = known();
    refused.wake(0);
    assert_eq!(refused.receive(&answer(&refused, Kind::Nak, [0; 4]), 1), []);
    let now = refused.due().unwrap();
    assert!(now > 1000);
    assert_eq!(sent(&refused.wake(now)).unwrap().kind, Kind::Discover);
}

#[test]
fn a_lease_goes_on_where_it_was() {
    let terms = bound().terms().unwrap().0.clone();
    let resume = |now| Machine::resume(identity(), TIMING, 1, terms.clone(), 1000, now);
    assert_eq!(resume(2000).due(), Some(51_000));
    assert!(matches!(resume(60_000).wake(60_000)[0], Action::Unicast { .. }));
    assert!(matches!(resume(95_000).wake(95_000)[0], Action::Broadcast { .. }));
    assert!(matches!(resume(101_000).wake(101_000)[0], Action::Lost { .. }));
}

#[test]
fn a_lease_that_never_ends_is_left_alone() {
    let mut machine = fresh(None);
    machine.wake(0);
    let mut offer = answer(&machine, Kind::Offer, ADDRESS);
    offer.options.set(code::LEASE_TIME, vec![0xff; 4]);
    machine.receive(&offer, 1);
    offer.kind = Kind::Ack;
    machine.receive(&offer, 2);
    assert_eq!(machine.due(), None);
}

#[test]
fn a_release_names_address_and_server() {
    let mut machine = bound();
    let release = machine.release().unwrap();
    assert_eq!((release.kind, release.client), (Kind::Release, ADDRESS.into()));
    assert_eq!(release.options.address(54), Some([10, 0, 0, 1].into()));
    assert_eq!(release.options.get(61), Some(&b"\0c1/n1/eth0"[..]));
    assert_eq!(release.options.get(50), None);
    assert_eq!((machine.release(), machine.due()), (None, None));
}

#[test]
fn any_stream_of_messages_keeps_the_machine_going() {
    use proptest::prelude::*;
    let kinds =
        prop_oneof![Just(Kind::Offer), Just(Kind::Ack), Just(Kind::Nak), Just(Kind::Discover)];
    let step = (kinds, any::<[u8; 4]>(), any::<u32>(), 0_u64..100_000);
    proptest!(|(steps in proptest::collection::vec(step, 0..60))| {
        let mut machine = fresh(None);
        let mut now = 0;
        for (kind, address, lease, wait) in steps {
            let mut message = answer(&machine, kind, address);
            message.options.set(code::LEASE_TIME, lease.to_be_bytes().to_vec());
            machine.receive(&message, now);
            now += wait;
            machine.wake(now);
            prop_assert!(machine.due().is_some() || machine.terms().is_some());
            prop_assert!(machine.due().is_none_or(|due| due > now), "it may not spin");
        }
    });
}
