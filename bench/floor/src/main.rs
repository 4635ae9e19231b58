//! The least that a process can do for the end state of a plugin's ADD or DEL:
//! the fewest netlink messages, nothing looked at first, nothing checked,
//! nothing kept. A measure, not a program to use.

mod chain;
mod links;
mod ports;

use std::error::Error;

type Outcome = Result<(), Box<dyn Error>>;

const USAGE: &str = "floor exit | prepare
      | bridge NETNS BRIDGE HOST_END ADDRESS GATEWAY [EXTRA...] | unbridge HOST_END ADDRESS [EXTRA...]
      | ptp NETNS HOST_END ADDRESS GATEWAY | unlink LINK
      | macvlan NETNS PARENT ADDRESS | tap NETNS ADDRESS | inside-unlink NETNS
      | move NETNS LINK ADDRESS | return NETNS LINK
      | loopback NETNS | ports ADDRESS | unports ADDRESS
EXTRA: masquerade, ports, limits, tuning";

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["exit"] => Ok(()),
        ["prepare"] => ports::prepare(),
        ["bridge", netns, bridge, host_end, address, gateway, extras @ ..] => {
            let netns = links::bridge(netns, bridge, host_end, address, gateway)?;
            chain::add(&netns, host_end, address, extras)
        }
        ["unbridge", host_end, address, extras @ ..] => chain::remove(host_end, address, extras),
        ["ptp", netns, host_end, address, gateway] => links::ptp(netns, host_end, address, gateway),
        ["unlink", link] => links::unlink(link),
        ["macvlan", netns, parent, address] => links::macvlan(netns, parent, address),
        ["tap", netns, address] => links::tap(netns, address),
        ["inside-unlink", netns] => links::inside_unlink(netns),
        ["move", netns, link, address] => links::move_in(netns, link, address),
        ["return", netns, link] => links::move_out(netns, link),
        ["loopback", netns] => links::loopback(netns),
        ["ports", address] => ports::add(address, true, false),
        ["unports", address] => ports::remove(address, true, false).map(drop),
        _ => Err(USAGE.into()),
    }
}
