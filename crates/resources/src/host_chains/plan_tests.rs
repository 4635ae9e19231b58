//! Plans over views that are made up: no kernel.

use std::collections::BTreeSet;

use podwire_netlink::nft::IpVersion;

use super::*;
use crate::host_chains::rule::Place;

/// A filter that does what it is told.
struct Host {
    rules: Vec<HostRule>,
    chains: BTreeSet<String>,
}

impl Host {
    fn new() -> Self {
        Self { rules: Vec::new(), chains: BTreeSet::new() }
    }

    fn view(&self) -> View {
        let seen = self.rules.iter().enumerate().map(|(number, rule)| {
            let mut nft = rule.to_nft(IpVersion::V4);
            nft.handle = Some(number as u64);
            Seen::from_nft(&nft).unwrap()
        });
        View { version: IpVersion::V4, rules: seen.collect(), chains: self.chains.clone() }
    }

    fn apply(&mut self, edits: Vec<Edit>) {
        let view = self.view();
        let before = self.rules.clone();
        for edit in edits {
            match edit {
                Edit::AddChain(name) => drop(self.chains.insert(name)),
                Edit::Insert(rule) => self.rules.insert(0, rule),
                Edit::Append(rule) => self.rules.push(rule),
                Edit::InsertBehind(rule, number) => {
                    let at = self.rules.iter().position(|one| *one == before[number]).unwrap();
                    self.rules.insert(at + 1, rule);
                }
                Edit::Delete(number) => {
                    assert!(matches!(view.rules[number].place, Place::Handle(_)));
                    let at = self.rules.iter().position(|one| *one == before[number]).unwrap();
                    self.rules.remove(at);
                }
                Edit::DeleteChain(name) => {
                    self.rules.retain(|rule| rule.chain != name);
                    assert!(self.chains.remove(&name), "{name} isn't there");
                }
            }
        }
    }

    fn separate(&mut self, bridge: &str, policy: IngressPolicy) -> usize {
        let edits = separating(&self.view(), bridge, policy);
        let count = edits.len();
        self.apply(edits);
        count
    }

    fn words(&self, chain: &str) -> Vec<String> {
        let of_chain = self.rules.iter().filter(|rule| rule.chain == chain);
        let plain = |rule: &HostRule| HostRule { comment: None, ..rule.clone() };
        of_chain.map(|rule| plain(rule).words().join(" ")).collect()
    }
}

#[test]
fn b110_a_bridge_is_kept_apart_once_and_policies_replace_each_other() {
    let mut host = Host::new();
    host.separate("br1", IngressPolicy::SameBridge);
    assert_eq!(host.words(FORWARD), ["-j CNI-ISOLATION-STAGE-1"]);
    let jump = "-i br1 ! -o br1 -j CNI-ISOLATION-STAGE-2";
    assert_eq!(host.words(STAGE_1), [jump, "-j RETURN"]);
    assert_eq!(host.words(STAGE_2), ["-o br1 -j DROP", "-j RETURN"]);
    assert_eq!(host.separate("br1", IngressPolicy::SameBridge), 0, "nothing to do again");
    host.separate("br1", IngressPolicy::Isolated);
    assert_eq!(host.words(STAGE_1), ["-i br1 -o br1 -j DROP", jump, "-j RETURN"]);
    host.separate("br1", IngressPolicy::SameBridge);
    assert_eq!(host.words(STAGE_1), [jump, "-j RETURN"]);
    assert_eq!(host.words(STAGE_2), ["-o br1 -j DROP", "-j RETURN"]);
}

#[test]
fn b110_the_last_bridge_takes_the_chains_with_it() {
    let mut host = Host::new();
    host.separate("br1", IngressPolicy::SameBridge);
    host.separate("br2", IngressPolicy::Isolated);
    host.apply(reuniting(&host.view(), &|bridge| bridge == "br1"));
    assert_eq!(host.words(STAGE_2), ["-o br2 -j DROP", "-j RETURN"]);
    assert_eq!(host.words(FORWARD).len(), 1);
    host.apply(reuniting(&host.view(), &|bridge| bridge == "br2"));
    assert!(host.rules.is_empty(), "{:?}", host.rules);
    assert!(reuniting(&host.view(), &|_| true).is_empty());
}

#[test]
fn rules_of_others_in_the_chains_stay() {
    let mut host = Host::new();
    host.separate("br1", IngressPolicy::SameBridge);
    let other = HostRule::new(STAGE_1, vec![Match::Input("lan0".into())], Target::Drop);
    host.rules.insert(0, other.clone());
    host.apply(reuniting(&host.view(), &|_| true));
    assert!(host.rules.contains(&other));
    assert_eq!(host.words(FORWARD).len(), 1);
}

#[test]
fn isolation_comes_before_acceptance_whichever_was_first() {
    let accepting = HostRule::new(FORWARD, Vec::new(), Target::Jump(CHAIN.into()));
    let mut host = Host::new();
    host.rules.push(accepting.clone());
    host.separate("br1", IngressPolicy::SameBridge);
    let order = ["-j CNI-ISOLATION-STAGE-1", "-j CNI-FORWARD"];
    assert_eq!(host.words(FORWARD), order);
    host.rules.retain(|rule| *rule != accepting);
    host.rules.insert(0, accepting);
    host.separate("br1", IngressPolicy::SameBridge);
    assert_eq!(host.words(FORWARD), order);
}

#[test]
fn words_name_policies() {
    for policy in [IngressPolicy::Open, IngressPolicy::SameBridge, IngressPolicy::Isolated] {
        assert_eq!(IngressPolicy::parse(policy.as_str()), Some(policy));
    }
    assert_eq!(IngressPolicy::parse("isolate"), None);
}

mod accepting {
    use super::*;
    use crate::host_chains::accepts::{Accepts, closing, opening};
    use crate::host_chains::filter::Answer;
    use podwire_spec::id::{ContainerId, IfName, NetworkName};
    use std::net::IpAddr;

    fn accepts(container: &str, admin: &str) -> (Accepts, OwnerMark) {
        let key = AttachmentKey {
            network: NetworkName::parse("n1").unwrap(),
            container_id: ContainerId::parse(container).unwrap(),
            ifname: IfName::parse("eth0").unwrap(),
        };
        (Accepts::new(&key, vec![address()], admin), OwnerMark::of(&key))
    }

    fn address() -> IpAddr {
        "10.1.0.2".parse().unwrap()
    }

    fn close(host: &mut Host, owner: OwnerMark, addresses: &[IpAddr]) {
        let mut view = host.view();
        loop {
            match closing(&view, &|mark| *mark == owner, addresses) {
                Answer::Edits(edits) => return host.apply(edits),
                Answer::Look(more) => view.chains.extend(more),
            }
        }
    }

    #[test]
    fn b020_an_old_owner_leaves_the_new_ones_rules() {
        let mut host = Host::new();
        let ((old, old_mark), (new, new_mark)) = (accepts("old", "A"), accepts("new", "A"));
        host.apply(opening(&host.view(), &old, &[address()]));
        assert_eq!(host.words(FORWARD), ["-j CNI-FORWARD"]);
        assert_eq!(
            host.words(CHAIN),
            [
                "-j A",
                "-d 10.1.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
                "-s 10.1.0.2/32 -j ACCEPT"
            ]
        );
        assert!(opening(&host.view(), &old, &[address()]).is_empty());
        host.apply(opening(&host.view(), &new, &[address()]));
        close(&mut host, old_mark, &[address()]);
        assert_eq!(host.words(CHAIN).len(), 3);
        close(&mut host, new_mark, &[]);
        assert!(host.rules.is_empty());
        assert!(host.chains.contains("A"), "never deleted");
    }

    #[test]
    fn ownerless_rules_go_with_their_address_or_are_taken_over() {
        let mut host = Host::new();
        let (own, mark) = accepts("c1", "A");
        host.apply(opening(&host.view(), &own, &[address()]));
        for rule in &mut host.rules {
            if rule.comment.as_deref().is_some_and(|text| text.contains("n1/c1")) {
                rule.comment = None;
            }
        }
        let gos = host.rules.clone();
        close(&mut host, mark, &[]);
        assert_eq!(host.rules, gos, "nobody knows whose they are");
        host.apply(opening(&host.view(), &own, &[address()]));
        assert_eq!(host.words(CHAIN).len(), 3, "replaced");
        host.rules = gos;
        close(&mut host, mark, &[address()]);
        assert!(host.rules.is_empty());
    }
}
