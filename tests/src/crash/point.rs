//! One kill: the scene, the recovery, and what must be true afterwards.

use podwire_testkit::kill::{Killed, SystemCall};
use podwire_testkit::state::Change;
use podwire_testkit::{HostState, Netns, Output, World};

use super::boot::Boots;
use super::left::left;
use super::place::Place;
use super::scene::{Fate, Host, Record, Recovery, Scene, Stranger};
use super::subject::{Subject, Target, Verb, done};

/// A world in which one kill after the other is made.
pub(super) struct Stage<'a> {
    subject: &'a dyn Subject,
    world: &'a World,
    verb: Verb,
    boots: Boots<'a>,
    /// The host before anything was done.
    blank: HostState,
    /// A namespace that nothing was done in.
    untouched: HostState,
    /// The container that is on the host all the time.
    survivor: Option<Container>,
    /// The host as the last kill has left it, if nothing was done since.
    left: Option<HostState>,
}

/// A kill that was made.
pub(super) struct Kill {
    /// The call that was not made any more.
    pub(super) call: SystemCall,
    /// Whether nothing that the program had started was alive.
    pub(super) is_alone: bool,
    /// What was not as it had to be.
    pub(super) faults: Vec<String>,
}

struct Container {
    target: Target,
    netns: Netns,
}

/// What is known of the container at the old path.
struct Neighbour {
    container: Container,
    by: Stranger,
    inside: HostState,
    /// Everything on the host that is its.
    facts: Vec<(String, String)>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(subject: &'a dyn Subject, world: &'a World, verb: Verb) -> Self {
        let netns = world.netns("untouched");
        subject.furnish(&netns, "victim");
        let untouched = netns.snapshot();
        netns.remove();
        let boots = Boots::new(world);
        boots.renew();
        subject.repair(world);
        let blank = world.detailed_snapshot();
        Self { subject, world, verb, boots, blank, untouched, survivor: None, left: None }
    }

    /// Makes one kill and recovers. `None` if the program ended before.
    pub(super) fn attempt(&mut self, place: Place, scene: Scene) -> Option<Kill> {
        let as_it_was_left = self.set(scene.host);
        let before = match (scene.fate, scene.host) {
            (Fate::Rebooted, _) | (_, Host::Fresh) => self.blank.clone(),
            (_, Host::InUse) => as_it_was_left.unwrap_or_else(|| self.world.detailed_snapshot()),
        };
        let mut victim = self.container("victim");
        if self.verb != Verb::Add {
            self.subject.add(self.world, &mut victim.target).unwrap();
        }
        let valid = self.valid(None);
        let killed =
            self.subject.kill(self.world, self.verb, &victim.target, &valid, place, scene.blow);
        let (call, is_alone) = match killed {
            Killed::At { call, is_alone, .. } => (call, is_alone),
            Killed::Finished { .. } => {
                self.clear();
                return None;
            }
        };
        let mut faults = Vec::new();
        let is_forgotten = self.is_forgotten(&victim);
        self.recover(&mut victim, scene, is_forgotten, &mut faults);
        let after = self.compare(&before, &mut faults);
        if faults.is_empty() {
            self.left = Some(after);
        } else {
            self.clear();
        }
        Some(Kill { call, is_alone, faults })
    }

    /// Whether GC came as far as to remove what alone told how the sandbox was.
    fn is_forgotten(&self, victim: &Container) -> bool {
        self.verb == Verb::Gc
            && self.subject.is_restored_from_a_record()
            && self.world.snapshot().facts().all(|(name, _)| {
                // Whoever finds an idle lock removes its file.
                name.starts_with("file /run/podwire/") || !name.contains(&victim.target.container)
            })
    }

    fn recover(
        &mut self,
        victim: &mut Container,
        scene: Scene,
        is_forgotten: bool,
        faults: &mut Vec<String>,
    ) {
        if scene.record == Record::Lost {
            self.subject.forget(&mut victim.target);
        }
        let neighbour = match scene.fate {
            Fate::Kept => None,
            Fate::Rebooted => {
                self.subject.settle();
                self.survivor = None;
                self.boots.reboot();
                self.subject.repair(self.world);
                self.attach_next(faults);
                None
            }
            Fate::Removed => {
                victim.netns.remove();
                None
            }
            Fate::Replaced(by) => {
                self.subject.settle();
                victim.netns.remove();
                Some(self.neighbour(by))
            }
        };
        let valid = self.valid(neighbour.as_ref());
        let mut step = |name: &str, outcome: Result<(), Box<Output>>| {
            if let Err(output) = outcome {
                faults.push(format!("{name} failed: {output:#?}"));
            }
        };
        if scene.recovery == Recovery::Del {
            step("DEL", self.subject.del(self.world, &victim.target));
            // The second one comes from a runtime that knows that the sandbox is gone.
            let again = match scene.fate {
                Fate::Removed => victim.target.clone().without_netns(),
                Fate::Kept | Fate::Replaced(_) | Fate::Rebooted => victim.target.clone(),
            };
            step("the second DEL", self.subject.del(self.world, &again));
        }
        step("GC", self.subject.gc(self.world, &valid));
        if let Some(survivor) = &self.survivor {
            step("CHECK of the other container", self.subject.check(self.world, &survivor.target));
        }
        match neighbour {
            Some(neighbour) => self.look_at(neighbour, faults),
            None if scene.fate == Fate::Kept => {
                let difference = victim.netns.snapshot().since(&self.untouched);
                let is_collected = scene.recovery == Recovery::Collection;
                let may_stay =
                    is_forgotten || (is_collected && !self.subject.is_seen_from_the_host());
                // The kernel's doing: the address of the loopback stays when it goes down,
                // and with the first VRF come rules that nobody removes.
                let is_the_kernels = |change: &Change| {
                    change.name() == "address lo 127.0.0.1/8"
                        || matches!(change, Change::Added(name, value)
                            if name.starts_with("rule -") && value.contains("\"l3mdev\":null"))
                };
                let difference = difference.without(|change| may_stay || is_the_kernels(change));
                if !difference.changes.is_empty() {
                    faults.push(format!("left in the namespace:\n{difference}"));
                }
                victim.netns.remove();
            }
            None => {}
        }
    }

    /// The first container after a boot finds the host usable.
    fn attach_next(&self, faults: &mut Vec<String>) {
        let mut next = self.container("next");
        let outcome = self
            .subject
            .add(self.world, &mut next.target)
            .and_then(|()| self.subject.check(self.world, &next.target))
            .and_then(|()| self.subject.del(self.world, &next.target));
        if let Err(output) = outcome {
            faults.push(format!("attaching after the boot failed: {output:#?}"));
        }
        next.netns.remove();
    }

    /// The containers that are alive; the victim is not.
    fn valid<'n>(&'n self, neighbour: Option<&'n Neighbour>) -> Vec<&'n str> {
        let neighbour = neighbour.map(|one| one.container.target.container.as_str());
        let survivor = self.survivor.as_ref().map(|one| one.target.container.as_str());
        neighbour.into_iter().chain(survivor).collect()
    }

    /// Finds out what the kill has left; says how the host is now.
    fn compare(&self, before: &HostState, faults: &mut Vec<String>) -> HostState {
        let after = self.world.detailed_snapshot();
        let left = left(before, &after, self.subject.bridges()).without(|change| {
            // A device that was in a sandbox, as the kernel does it with virtual ones.
            let link = change.name().split(' ').nth(1);
            matches!(change, Change::Removed(..))
                && link.is_some_and(|link| self.subject.goes_with_sandbox(link))
        });
        if !left.changes.is_empty() {
            faults.push(format!("left on the host:\n{left}"));
        }
        after
    }

    /// Puts another container where the victim's namespace was.
    fn neighbour(&self, by: Stranger) -> Neighbour {
        let netns = self.world.netns("victim");
        self.subject.furnish(&netns, "stranger");
        let mut container = Container { target: Target::new("stranger", netns.path()), netns };
        match by {
            Stranger::Ours => self.subject.add(self.world, &mut container.target).unwrap(),
            Stranger::Go => {
                // On a busy machine the Go plugin gives up waiting for the search for
                // duplicates, which isn't what is looked at here.
                container.netns.run(|| {
                    for whose in ["all", "default"] {
                        let file = format!("/proc/sys/net/ipv6/conf/{whose}/accept_dad");
                        std::fs::write(file, "0").unwrap();
                    }
                });
                let call = self.subject.go_neighbour(&container.target).unwrap();
                container.target.result = Some(call.command("ADD").run().success().json());
            }
        }
        let inside = container.netns.snapshot();
        let words = words_of(&container.target);
        let is_its = |text: &str| words.iter().any(|word| holds_word(text, word));
        let facts = self.world.snapshot();
        // Whoever finds an idle lock removes its file.
        let facts = facts.facts().filter(|(name, _)| !name.starts_with("file /run/podwire/"));
        let facts = facts.filter(|(name, value)| is_its(name) || is_its(value));
        let facts = facts.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        Neighbour { container, by, inside, facts }
    }

    /// Finds out whether a neighbour was touched, and takes it away.
    fn look_at(&self, neighbour: Neighbour, faults: &mut Vec<String>) {
        let Neighbour { container, by, inside, facts } = neighbour;
        let target = &container.target;
        let difference = container.netns.snapshot().since(&inside);
        if !difference.changes.is_empty() {
            faults.push(format!("the stranger's namespace was touched:\n{difference}"));
        }
        let now = self.world.snapshot();
        for (name, value) in &facts {
            // Rules of a chain that others have rules in too change places.
            let place = |name: &str| name.split_once(" #").map(|(chain, _)| chain.to_owned());
            let is_it = |present: &str, now: &str| match place(name) {
                Some(chain) => place(present) == Some(chain) && now == value,
                None => present == name,
            };
            let found = now.facts().find(|(present, now)| is_it(present, now));
            if found.is_none_or(|(_, present)| present != value) {
                faults.push(format!("of the stranger's: {name}: {value} became {found:?}"));
            }
        }
        let mut step = |name: &str, outcome: Result<(), Box<Output>>| {
            if let Err(output) = outcome {
                faults.push(format!("{name} of the stranger failed: {output:#?}"));
            }
        };
        let go = |verb: &str| {
            let call = self.subject.go_neighbour(target).unwrap();
            done(call.command(verb).run()).map(drop)
        };
        match by {
            Stranger::Ours => {
                step("CHECK", self.subject.check(self.world, target));
                step("DEL", self.subject.del(self.world, target));
            }
            Stranger::Go => {
                step("CHECK", go("CHECK"));
                step("DEL", go("DEL"));
            }
        }
        container.netns.remove();
    }

    fn container(&self, name: &str) -> Container {
        let netns = self.world.netns(name);
        self.subject.furnish(&netns, name);
        Container { target: Target::new(name, netns.path()), netns }
    }

    /// Makes the host as a scene wants it. Says how it is, if that is known since
    /// the last kill.
    fn set(&mut self, host: Host) -> Option<HostState> {
        let is_repaired = self.subject.repair(self.world);
        let left = self.left.take().filter(|_| !is_repaired);
        match host {
            Host::InUse if self.survivor.is_some() => return left,
            Host::Fresh => self.clear(),
            Host::InUse => {
                let mut survivor = self.container("survivor");
                self.subject.add(self.world, &mut survivor.target).unwrap();
                self.survivor = Some(survivor);
            }
        }
        None
    }

    /// Makes the host as it was before anything was done.
    pub(super) fn clear(&mut self) {
        (self.survivor, self.left) = (None, None);
        self.subject.settle();
        self.boots.renew();
        self.subject.repair(self.world);
    }
}

/// What names a container in the facts of a host: its id, addresses, host end.
fn words_of(target: &Target) -> Vec<String> {
    let mut words = vec![target.container.clone()];
    let result = target.result.as_ref().unwrap();
    for ip in result["ips"].as_array().into_iter().flatten() {
        let address = ip["address"].as_str().unwrap();
        let address = address.split('/').next().unwrap();
        // Every container has the loopback's.
        if !["127.0.0.1", "::1"].contains(&address) {
            words.push(address.to_owned());
        }
    }
    for interface in result["interfaces"].as_array().into_iter().flatten() {
        let name = interface["name"].as_str().unwrap();
        if name.starts_with("veth") {
            words.push(name.to_owned());
        }
    }
    words
}

/// Whether a text holds a word that is not part of a longer one.
fn holds_word(text: &str, word: &str) -> bool {
    let is_part = |found: Option<char>| found.is_some_and(char::is_alphanumeric);
    text.match_indices(word).any(|(start, _)| {
        let (head, tail) = (&text[..start], &text[start + word.len()..]);
        !is_part(head.chars().next_back()) && !is_part(tail.chars().next())
    })
}

#[cfg(test)]
mod tests {
    use super::holds_word;

    #[test]
    fn a_word_is_no_part_of_a_longer_one() {
        assert!(holds_word("address eth0 10.0.0.2/24", "10.0.0.2"));
        assert!(!holds_word("address eth0 10.0.0.25/24", "10.0.0.2"));
        assert!(holds_word("10.0.0.25 10.0.0.2", "10.0.0.2"));
        assert!(!holds_word("110.0.0.2", "10.0.0.2"));
    }
}
