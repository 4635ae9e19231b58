//! A rule in the words of iptables, and its two ways into the kernel.
//!
//! `iptables-nft` refuses a table in which it finds an expression that it
//! wouldn't write itself, so the nftables form is to the letter what it
//! writes: payload compares, interface names with one NUL, `conntrack` and
//! `comment` as xtables matches, a counter, a verdict.

use std::net::IpAddr;

use ipnet::IpNet;
use podwire_netlink::nft::xtables::state;
use podwire_netlink::nft::{
    Comparison, Data, Expression, Family, Field, IpVersion, MetaKey, PayloadBase, Rule, TableId,
    Verdict, xtables,
};
use podwire_plugin::OwnerMark;

/// The host's table, as iptables names it.
pub(super) const TABLE: &str = "filter";

/// Which packets a rule is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Match {
    /// `-s`: from this one address.
    Source(IpAddr),
    /// `-d`: to this one address.
    Destination(IpAddr),
    /// `-i`: that came in by this interface.
    Input(String),
    /// `-o`: that go out by this interface.
    Output(String),
    /// `! -o`: that go out by another.
    NotOutput(String),
    /// `-m conntrack --ctstate RELATED,ESTABLISHED`
    Established,
}

/// What becomes of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Target {
    /// They pass.
    Accept,
    /// They are dropped.
    Drop,
    /// Back to the calling chain.
    Return,
    /// Through another chain.
    Jump(String),
}

/// A rule of one of the host's chains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostRule {
    /// The chain it is in.
    pub(super) chain: String,
    /// All must hold; addresses before interfaces before states.
    pub(super) matches: Vec<Match>,
    /// `-m comment --comment`
    pub(super) comment: Option<String>,
    /// The end of it.
    pub(super) target: Target,
}

/// A rule as found in one of the host's chains, whoever made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Seen {
    /// The chain it is in.
    pub(super) chain: String,
    /// The words of iptables without comment and target; `None` for a rule
    /// of a form that none of ours has.
    pub(super) matches: Option<Vec<String>>,
    /// Its comment.
    pub(super) comment: Option<String>,
    /// Its target.
    pub(super) target: Option<Target>,
    /// What deletes it.
    pub(super) place: Place,
}

/// How a rule that was found is named for deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    /// nftables: by its handle.
    Handle(u64),
    /// Legacy xtables: by all its words, behind the chain's name.
    Words(Vec<String>),
}

/// The nftables family of an IP version.
pub(super) fn family(version: IpVersion) -> Family {
    match version {
        IpVersion::V4 => Family::Ipv4,
        IpVersion::V6 => Family::Ipv6,
    }
}

pub(super) fn table(version: IpVersion) -> TableId<'static> {
    TableId::new(family(version), TABLE)
}

impl Match {
    fn words(&self) -> Vec<String> {
        let own = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Source(address) => own(&["-s", &IpNet::from(*address).to_string()]),
            Self::Destination(address) => own(&["-d", &IpNet::from(*address).to_string()]),
            Self::Input(name) => own(&["-i", name]),
            Self::Output(name) => own(&["-o", name]),
            Self::NotOutput(name) => own(&["!", "-o", name]),
            Self::Established => own(&["-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED"]),
        }
    }

    fn append(&self, rule: Rule) -> Rule {
        let name = |name: &str| Data::from_bytes([name.as_bytes(), &[0]].concat());
        match self {
            Self::Source(address) => rule.source(Comparison::Equal, IpNet::from(*address)),
            Self::Destination(address) => {
                rule.destination(Comparison::Equal, IpNet::from(*address))
            }
            Self::Input(input) => rule.field(Field::InputInterface, Comparison::Equal, name(input)),
            Self::Output(output) => {
                rule.field(Field::OutputInterface, Comparison::Equal, name(output))
            }
            Self::NotOutput(output) => {
                rule.field(Field::OutputInterface, Comparison::NotEqual, name(output))
            }
            Self::Established => rule.xt_conntrack(state::RELATED | state::ESTABLISHED),
        }
    }
}

impl Target {
    fn name(&self) -> &str {
        match self {
            Self::Accept => "ACCEPT",
            Self::Drop => "DROP",
            Self::Return => "RETURN",
            Self::Jump(chain) => chain,
        }
    }

    fn verdict(&self) -> Verdict {
        match self {
            Self::Accept => Verdict::Accept,
            Self::Drop => Verdict::Drop,
            Self::Return => Verdict::Return,
            Self::Jump(chain) => Verdict::jump(chain),
        }
    }
}

impl HostRule {
    /// A rule for all packets of a chain.
    pub(super) fn new(chain: &str, matches: Vec<Match>, target: Target) -> Self {
        Self { chain: chain.to_owned(), matches, comment: None, target }
    }

    /// The same with a comment.
    #[must_use]
    pub(super) fn with_comment(mut self, comment: &str) -> Self {
        self.comment = Some(comment.to_owned());
        self
    }

    fn match_words(&self) -> Vec<String> {
        self.matches.iter().flat_map(Match::words).collect()
    }

    /// What follows the chain's name on the command line of iptables.
    pub(super) fn words(&self) -> Vec<String> {
        let mut words = self.match_words();
        if let Some(comment) = &self.comment {
            words.extend(["-m", "comment", "--comment", comment].map(str::to_owned));
        }
        words.extend(["-j", self.target.name()].map(str::to_owned));
        words
    }

    /// The rule as `iptables-nft` puts it into nftables.
    pub(super) fn to_nft(&self, version: IpVersion) -> Rule {
        let begin = Rule::new(table(version).chain(&self.chain));
        let mut rule = self.matches.iter().fold(begin, |rule, one| one.append(rule));
        if let Some(comment) = &self.comment {
            rule = rule.xt_comment(comment);
        }
        rule.counter().verdict(self.target.verdict())
    }
}

impl Seen {
    /// Whether it is this rule.
    pub(super) fn is(&self, rule: &HostRule) -> bool {
        self.chain == rule.chain
            && self.comment == rule.comment
            && self.target.as_ref() == Some(&rule.target)
            && self.matches.as_ref() == Some(&rule.match_words())
    }

    /// The attachment that its comment names.
    pub(super) fn owner(&self) -> Option<OwnerMark> {
        OwnerMark::from_comment(self.comment.as_deref()?)
    }

    /// The chain that it jumps to.
    pub(super) fn jumps_to(&self) -> Option<&str> {
        match self.target.as_ref()? {
            Target::Jump(chain) => Some(chain),
            _ => None,
        }
    }

    /// A rule that nftables listed; `None` for one without a handle.
    pub(super) fn from_nft(rule: &Rule) -> Option<Self> {
        let target = rule.expressions.iter().find_map(|expression| match expression {
            Expression::Verdict(Verdict::Accept) => Some(Target::Accept),
            Expression::Verdict(Verdict::Drop) => Some(Target::Drop),
            Expression::Verdict(Verdict::Return) => Some(Target::Return),
            Expression::Verdict(Verdict::Jump(chain)) => Some(Target::Jump(chain.clone())),
            _ => None,
        });
        Some(Self {
            chain: rule.chain.clone(),
            matches: words_of(rule),
            comment: rule.comment(),
            target,
            place: Place::Handle(rule.handle?),
        })
    }

    /// A rule in the words of `iptables -S`: `-A CHAIN …`.
    pub(super) fn from_words(words: &[String]) -> Option<Self> {
        let [command, chain, rest @ ..] = words else { return None };
        if command != "-A" {
            return None;
        }
        let (mut matches, mut comment, mut target) = (Vec::new(), None, None);
        let mut left = rest;
        while let Some(word) = left.first() {
            left = match left {
                [m, kind, option, text, tail @ ..]
                    if m == "-m" && kind == "comment" && option == "--comment" =>
                {
                    comment = Some(text.clone());
                    tail
                }
                [j, name] if j == "-j" => {
                    target = Some(match name.as_str() {
                        "ACCEPT" => Target::Accept,
                        "DROP" => Target::Drop,
                        "RETURN" => Target::Return,
                        chain => Target::Jump(chain.to_owned()),
                    });
                    &[]
                }
                [_, tail @ ..] => {
                    matches.push(word.clone());
                    tail
                }
                [] => &[],
            };
        }
        let place = Place::Words(rest.to_vec());
        Some(Self { chain: chain.clone(), matches: Some(matches), comment, target, place })
    }
}

/// What a compare is about to look at.
enum Loaded {
    Address(&'static str),
    Interface(&'static str),
}

/// The matches of an nftables rule in the words of iptables, if it is of a
/// form that [`HostRule`] has.
fn words_of(rule: &Rule) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut loaded = None;
    for expression in &rule.expressions {
        match expression {
            Expression::Payload { base: PayloadBase::Network, offset, length, .. } => {
                let option = match (rule.family, offset, length) {
                    (Family::Ipv4, 12, 4) | (Family::Ipv6, 8, 16) => "-s",
                    (Family::Ipv4, 16, 4) | (Family::Ipv6, 24, 16) => "-d",
                    _ => return None,
                };
                loaded = Some(Loaded::Address(option));
            }
            Expression::Meta { key: MetaKey::InputName, .. } => {
                loaded = Some(Loaded::Interface("-i"));
            }
            Expression::Meta { key: MetaKey::OutputName, .. } => {
                loaded = Some(Loaded::Interface("-o"));
            }
            Expression::Compare { comparison, value, .. } => {
                match comparison {
                    Comparison::Equal => {}
                    Comparison::NotEqual => words.push("!".to_owned()),
                    _ => return None,
                }
                match loaded.take()? {
                    Loaded::Address(option) => {
                        words.extend([option.to_owned(), address(value)?]);
                    }
                    Loaded::Interface(option) => {
                        words.extend([option.to_owned(), interface(value)?]);
                    }
                }
            }
            Expression::XtMatch { name, .. } if name == "comment" => {}
            Expression::XtMatch { name, revision: 3, info } if name == "conntrack" => {
                let wanted = xtables::conntrack(state::RELATED | state::ESTABLISHED);
                let Expression::XtMatch { info: wanted, .. } = wanted else { return None };
                // The kernel may list the structure without its padding.
                let same = |(one, other): (&u8, &u8)| one == other;
                if info.len() < 152 || !info.iter().zip(&wanted).all(same) {
                    return None;
                }
                words.extend(Match::Established.words());
            }
            Expression::Counter { .. } | Expression::Verdict(_) => {}
            _ => return None,
        }
    }
    Some(words)
}

fn address(value: &Data) -> Option<String> {
    let bytes = value.as_bytes();
    let address = match bytes.len() {
        4 => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        16 => IpAddr::from(<[u8; 16]>::try_from(bytes).ok()?),
        _ => return None,
    };
    Some(IpNet::from(address).to_string())
}

/// A whole name, that is one with its NUL; without, it is a prefix (`br+`).
fn interface(value: &Data) -> Option<String> {
    let bytes = value.as_bytes();
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes.get(..end)?.to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> Vec<HostRule> {
        let address = |text: &str| text.parse().unwrap();
        vec![
            HostRule::new("C", vec![Match::Source(address("10.1.0.2"))], Target::Accept)
                .with_comment("43d91f8451058a70-f4d01f2ef4b92245 n1/c1/eth0"),
            HostRule::new(
                "C",
                vec![Match::Destination(address("10.1.0.2")), Match::Established],
                Target::Accept,
            ),
            HostRule::new(
                "S",
                vec![Match::Input("cni0".into()), Match::NotOutput("cni0".into())],
                Target::Jump("T".into()),
            )
            .with_comment("CNI firewall plugin rules (ingressPolicy: same-bridge)"),
            HostRule::new("T", vec![Match::Output("cni0".into())], Target::Drop),
            HostRule::new("T", vec![], Target::Return),
        ]
    }

    #[test]
    fn a_rule_is_recognised_in_nftables_and_in_the_words_of_iptables() {
        for rule in rules() {
            let mut nft = rule.to_nft(IpVersion::V4);
            nft.handle = Some(7);
            let seen = Seen::from_nft(&nft).unwrap();
            assert!(seen.is(&rule), "{seen:?} {rule:?}");
            let mut words = vec!["-A".to_owned(), rule.chain.clone()];
            words.extend(rule.words());
            let seen = Seen::from_words(&words).unwrap();
            assert!(seen.is(&rule), "{seen:?} {rule:?}");
            for other in rules().iter().filter(|other| **other != rule) {
                assert!(!seen.is(other));
            }
        }
    }

    #[test]
    fn words_are_those_that_iptables_prints() {
        let words: Vec<_> = rules().iter().map(|rule| rule.words().join(" ")).collect();
        assert_eq!(
            words[1..3],
            [
                "-d 10.1.0.2/32 -m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
                "-i cni0 ! -o cni0 -m comment --comment CNI firewall plugin rules \
                 (ingressPolicy: same-bridge) -j T"
            ]
        );
    }

    #[test]
    fn the_owner_is_in_the_comment() {
        let mut nft = rules()[0].to_nft(IpVersion::V4);
        nft.handle = Some(1);
        let seen = Seen::from_nft(&nft).unwrap();
        assert_eq!(seen.owner().unwrap().to_string(), "43d91f8451058a70-f4d01f2ef4b92245");
    }

    #[test]
    fn other_forms_are_no_rule_of_ours() {
        let chain = table(IpVersion::V4).chain("C");
        let net: IpNet = "10.1.0.0/16".parse().unwrap();
        for mut rule in [
            Rule::new(chain).source(Comparison::Equal, net).verdict(Verdict::Accept),
            Rule::new(chain).protocol(6).verdict(Verdict::Accept),
            Rule::new(chain)
                .field(Field::InputInterface, Comparison::Equal, Data::from_bytes(*b"br"))
                .verdict(Verdict::Accept),
        ] {
            rule.handle = Some(1);
            assert_eq!(Seen::from_nft(&rule).unwrap().matches, None, "{rule:?}");
        }
        assert!(Seen::from_words(&["-P".to_owned(), "FORWARD".to_owned()]).is_none());
        assert!(Seen::from_words(&[]).is_none());
    }
}
