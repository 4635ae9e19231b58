//! A chain of plugins, called by the harness as a runtime calls them.

use std::collections::BTreeMap;
use std::path::Path;

use podwire_testkit::kill::{Blow, Killed};
use podwire_testkit::{
    DiskFault, GoPlugins, Netns, Output, Plugin, Refusal, Refused, Spoiled, World,
};
use serde_json::{Value, json};

use super::place::Place;
use super::subject::{Subject, Target, Verb, done};

/// The version that requests are in.
const VERSION: &str = "1.1.0";

/// The containers that the harness makes.
const CONTAINERS: [&str; 5] = ["victim", "survivor", "stranger", "next", "count"];

/// The address of the interface that is in a container's sandbox already.
fn furnished_mac(container: &str) -> String {
    let place = CONTAINERS.iter().position(|known| *known == container);
    format!("02:00:5e:10:00:{:02}", place.unwrap_or(CONTAINERS.len()))
}

/// The device of the host that is a container's own, and that device's other end.
fn device(container: &str) -> String {
    format!("hd-{container}")
}

/// A chain of plugins.
pub struct PluginChain {
    /// For tables.
    pub name: &'static str,
    /// The network's name.
    pub network: &'static str,
    /// The interface in the container.
    pub ifname: &'static str,
    /// Bridges that may stay.
    pub bridges: &'static [&'static str],
    /// The plugins' own keys, `type` included, in order.
    pub plugins: Vec<Value>,
}

impl PluginChain {
    /// The network configuration list, for runtimes.
    pub fn list(&self) -> Value {
        let plugins: Vec<Value> = self
            .plugins
            .iter()
            .map(|plugin| {
                let mut plugin = plugin.clone();
                if plugin["type"] == "portmap" {
                    plugin["capabilities"] = json!({"portMappings": true});
                }
                plugin
            })
            .collect();
        json!({"cniVersion": VERSION, "name": self.network, "plugins": plugins})
    }

    /// What a runtime would put into `runtimeConfig` for a container: host ports
    /// that differ from container to container.
    pub fn capabilities(&self, container: &str) -> Option<Value> {
        if !self.plugins.iter().any(|plugin| plugin["type"] == "portmap") {
            return None;
        }
        let base = 10_000
            + 2 * container.bytes().fold(0_u32, |sum, byte| {
                sum.wrapping_mul(31).wrapping_add(u32::from(byte)) % 20_000
            });
        let mapping = |port: u32, inside: u32, protocol: &str| json!({"hostPort": port, "containerPort": inside, "protocol": protocol});
        Some(json!({"portMappings": [
            mapping(base, 80, "tcp"), mapping(base, 53, "udp"), mapping(base + 1, 443, "tcp"),
        ]}))
    }

    /// Links of the host that must be there: parents of macvlans.
    fn parents(&self) -> impl Iterator<Item = &str> {
        self.plugins.iter().filter_map(|plugin| plugin["master"].as_str())
    }

    /// Whether every container gets a device of the host of its own.
    fn moves_devices(&self) -> bool {
        self.plugins.iter().any(|plugin| plugin["type"] == "host-device")
    }

    /// Whether the first plugin works on an interface that is there already.
    fn is_furnished(&self) -> bool {
        self.plugins.first().is_some_and(|plugin| plugin["type"] == "tuning")
    }

    /// What the first plugin gets as prevResult on ADD.
    fn first_result(&self, target: &Target) -> Option<Value> {
        let netns = target.netns.as_ref().filter(|_| self.is_furnished())?;
        let interface =
            json!({"name": self.ifname, "mac": furnished_mac(&target.container), "sandbox": netns});
        Some(json!({"cniVersion": VERSION, "interfaces": [interface]}))
    }

    /// A plugin's own keys for one container.
    fn keys(&self, index: usize, container: &str) -> Value {
        let mut keys = self.plugins[index].clone();
        match keys["type"].as_str() {
            Some("host-device") => keys["device"] = device(container).into(),
            // A parent has every VLAN once.
            Some("vlan") => {
                let place = CONTAINERS.iter().position(|known| *known == container);
                keys["vlanId"] = (100 + place.unwrap_or(CONTAINERS.len())).into();
            }
            _ => {}
        }
        keys
    }

    fn request(&self, index: usize, target: Option<&Target>, previous: Option<&Value>) -> Value {
        let container = target.map_or(CONTAINERS[0], |target| target.container.as_str());
        let mut request = self.keys(index, container);
        request["cniVersion"] = VERSION.into();
        request["name"] = self.network.into();
        if let Some(previous) = previous {
            request["prevResult"] = previous.clone();
        }
        if let Some(capabilities) = target.and_then(|target| self.capabilities(&target.container))
            && request["type"] == "portmap"
        {
            request["runtimeConfig"] = capabilities;
        }
        request
    }

    /// The chain with the plugins of a directory, for many threads at once.
    pub fn installed<'a>(&'a self, directory: &'a Path) -> Installed<'a> {
        Installed { chain: self, directory }
    }
}

/// A chain whose plugins are installed.
#[derive(Clone, Copy)]
pub struct Installed<'a> {
    chain: &'a PluginChain,
    directory: &'a Path,
}

impl Installed<'_> {
    fn plugin(&self, index: usize, verb: &str) -> Plugin {
        let name = self.chain.plugins[index]["type"].as_str().unwrap();
        Plugin::at(self.directory.join(name)).search_in(&[self.directory]).command(verb)
    }

    fn call(&self, verb: &str, index: usize, target: &Target, previous: Option<&Value>) -> Plugin {
        let plugin = self
            .plugin(index, verb)
            .container(&target.container)
            .ifname(self.chain.ifname)
            .args(&target.args)
            .config(self.chain.request(index, Some(target), previous));
        match &target.netns {
            Some(netns) => plugin.env("CNI_NETNS", netns),
            None => plugin,
        }
    }

    /// A whole ADD; sets the target's result.
    ///
    /// # Errors
    /// What the plugin that failed said; what those before made is not removed.
    pub fn add(&self, target: &mut Target) -> Result<(), Box<Output>> {
        let mut previous = self.chain.first_result(target);
        for index in 0..self.chain.plugins.len() {
            let call = self.call("ADD", index, target, previous.as_ref());
            previous = Some(done(call.run())?.json());
        }
        target.result = previous;
        Ok(())
    }

    /// A whole DEL.
    ///
    /// # Errors
    /// What the plugin that failed said.
    pub fn del(&self, target: &Target) -> Result<(), Box<Output>> {
        for index in (0..self.chain.plugins.len()).rev() {
            done(self.call("DEL", index, target, target.result.as_ref()).run())?;
        }
        Ok(())
    }

    /// ADD of the first plugin alone; sets the target's result.
    ///
    /// # Errors
    /// What it said.
    pub fn add_first(&self, target: &mut Target) -> Result<(), Box<Output>> {
        let previous = self.chain.first_result(target);
        target.result = Some(done(self.call("ADD", 0, target, previous.as_ref()).run())?.json());
        Ok(())
    }

    /// DEL of the first plugin alone.
    ///
    /// # Errors
    /// What it said.
    pub fn del_first(&self, target: &Target) -> Result<(), Box<Output>> {
        done(self.call("DEL", 0, target, target.result.as_ref()).run()).map(drop)
    }

    /// A whole CHECK.
    ///
    /// # Errors
    /// What the plugin that found a difference said.
    pub fn check(&self, target: &Target) -> Result<(), Box<Output>> {
        for index in 0..self.chain.plugins.len() {
            done(self.call("CHECK", index, target, target.result.as_ref()).run())?;
        }
        Ok(())
    }

    /// A whole GC that keeps these containers.
    ///
    /// # Errors
    /// What the plugin that failed said.
    pub fn gc(&self, valid: &[&str]) -> Result<(), Box<Output>> {
        for index in 0..self.chain.plugins.len() {
            done(self.collection(index, valid).run())?;
        }
        Ok(())
    }

    fn collection(&self, index: usize, valid: &[&str]) -> Plugin {
        let valid = valid.iter();
        let valid: Vec<Value> = valid
            .map(|container| json!({"containerID": container, "ifname": self.chain.ifname}))
            .collect();
        let mut request = self.chain.request(index, None, None);
        request["cni.dev/valid-attachments"] = valid.into();
        self.plugin(index, "GC").config(request)
    }

    /// A verb of one plugin with one netlink request of it refused. For ADD the plugins
    /// before it run as usual, for DEL those behind it; ADD sets the target's result.
    ///
    /// # Panics
    /// When one of the others fails.
    pub fn refuse(
        &self,
        verb: Verb,
        target: &mut Target,
        program: usize,
        request: u64,
        refusal: Refusal,
    ) -> Refused {
        self.meddle(verb, target, program, |call| {
            let refused = call.refuse_at(request, refusal);
            (refused.output.clone(), refused)
        })
    }

    /// The same on a disk that is bad from a counted call on.
    ///
    /// # Panics
    /// When one of the others fails.
    pub fn spoil(
        &self,
        verb: Verb,
        target: &mut Target,
        program: usize,
        number: u64,
        fault: DiskFault,
    ) -> Spoiled {
        self.meddle(verb, target, program, |call| {
            let spoiled = call.spoil_at(number, fault);
            (spoiled.output.clone(), spoiled)
        })
    }

    fn meddle<T>(
        &self,
        verb: Verb,
        target: &mut Target,
        program: usize,
        run: impl FnOnce(Plugin) -> (Output, T),
    ) -> T {
        let previous = self.up_to(verb, target, program);
        let (output, outcome) = run(self.call(verb.as_str(), program, target, previous.as_ref()));
        if verb == Verb::Add {
            target.result = if output.code == 0 { Some(output.json()) } else { previous };
        }
        outcome
    }

    /// The plugins behind one that has run.
    ///
    /// # Errors
    /// What the plugin that failed said.
    pub fn add_rest(&self, target: &mut Target, program: usize) -> Result<(), Box<Output>> {
        for index in program + 1..self.chain.plugins.len() {
            let call = self.call("ADD", index, target, target.result.as_ref());
            target.result = Some(done(call.run())?.json());
        }
        Ok(())
    }

    /// DEL of the plugins before one.
    ///
    /// # Errors
    /// What the plugin that failed said.
    pub fn del_before(&self, target: &Target, program: usize) -> Result<(), Box<Output>> {
        for index in (0..program).rev() {
            done(self.call("DEL", index, target, target.result.as_ref()).run())?;
        }
        Ok(())
    }

    fn kill(
        &self,
        verb: Verb,
        target: &Target,
        valid: &[&str],
        place: Place,
        blow: Blow,
    ) -> Killed {
        if verb == Verb::Gc {
            for index in 0..place.program {
                self.collection(index, valid).run().success();
            }
            return self.collection(place.program, valid).strike_at(place.call, blow);
        }
        let previous = self.up_to(verb, target, place.program);
        let call = self.call(verb.as_str(), place.program, target, previous.as_ref());
        call.strike_at(place.call, blow)
    }

    /// Runs what comes before a plugin in a verb; gives what it gets as prevResult.
    fn up_to(&self, verb: Verb, target: &Target, program: usize) -> Option<Value> {
        let mut previous = self.chain.first_result(target);
        if verb == Verb::Add {
            for index in 0..program {
                let call = self.call("ADD", index, target, previous.as_ref());
                previous = Some(call.run().success().json());
            }
        } else {
            previous.clone_from(&target.result);
            for index in (program + 1..self.chain.plugins.len()).rev() {
                self.call("DEL", index, target, previous.as_ref()).run().success();
            }
        }
        previous
    }
}

impl Subject for PluginChain {
    fn name(&self) -> &str {
        self.name
    }

    fn ifname(&self) -> &str {
        self.ifname
    }

    fn bridges(&self) -> &[&str] {
        self.bridges
    }

    fn prepare(&self, world: &World) {
        for name in self.parents() {
            let peer = format!("{name}-peer");
            world.exec(&["ip", "link", "add", name, "type", "veth", "peer", "name", &peer]);
            for end in [name, &peer] {
                world.exec(&["ip", "link", "set", end, "up"]);
            }
        }
        self.repair(world);
    }

    fn repair(&self, world: &World) -> bool {
        if !self.moves_devices() {
            return false;
        }
        let links = world.ip_json(&["link", "show", "type", "veth"]);
        let links: BTreeMap<&str, bool> = links
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|link| {
                let is_up = link["flags"].as_array()?.contains(&json!("UP"));
                Some((link["ifname"].as_str()?, is_up))
            })
            .collect();
        for (number, container) in CONTAINERS.iter().enumerate() {
            let (device, mac) = (device(container), format!("02:00:5e:20:00:{number:02}"));
            let peer = format!("{device}-p");
            let is_inside = Path::new("/run/netns").join(container).exists();
            if links.get(device.as_str()) == Some(&false) {
                world.exec(&["ip", "link", "set", &device, "up"]);
            }
            if links.contains_key(device.as_str()) || is_inside {
                continue;
            }
            // Where the sandbox has just gone, the other end may still be going.
            let is_there = || world.try_exec(&["ip", "link", "show", &peer]).code == 0;
            crate::wait_until("the peer of a device to be gone", || !is_there());
            world.exec(&[
                "ip",
                "link",
                "add",
                &device,
                "address",
                &mac,
                "type",
                "veth",
                "peer",
                "name",
                &peer,
                "address",
                &mac.replace(":20:", ":30:"),
            ]);
            for end in [&device, &peer] {
                world.exec(&["ip", "link", "set", end, "up"]);
            }
        }
        true
    }

    fn goes_with_sandbox(&self, link: &str) -> bool {
        self.moves_devices() && link.starts_with("hd-victim")
    }

    fn furnish(&self, netns: &Netns, container: &str) {
        if self.is_furnished() {
            netns.exec(&["ip", "tuntap", "add", self.ifname, "mode", "tap"]);
            netns.exec(&["ip", "link", "set", self.ifname, "address", &furnished_mac(container)]);
        }
    }

    fn is_seen_from_the_host(&self) -> bool {
        // Of these GC sees nothing, or not all: they are in the sandbox alone.
        const INSIDE: [&str; 8] =
            ["macvlan", "ipvlan", "vlan", "dummy", "tap", "host-device", "sbr", "vrf"];
        let is_inside = |plugin: &Value| INSIDE.iter().any(|kind| plugin["type"] == *kind);
        !self.plugins.iter().any(is_inside) && !self.is_furnished() && self.ifname != "lo"
    }

    fn is_restored_from_a_record(&self) -> bool {
        self.is_furnished()
    }

    fn programs(&self) -> usize {
        self.plugins.len()
    }

    fn program(&self, index: usize) -> &str {
        self.plugins[index]["type"].as_str().unwrap()
    }

    fn add(&self, world: &World, target: &mut Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).add(target)
    }

    fn del(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).del(target)
    }

    fn kill(
        &self,
        world: &World,
        verb: Verb,
        target: &Target,
        valid: &[&str],
        place: Place,
        blow: Blow,
    ) -> Killed {
        self.installed(world.plugin_directory()).kill(verb, target, valid, place, blow)
    }

    fn check(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).check(target)
    }

    fn gc(&self, world: &World, valid: &[&str]) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).gc(valid)
    }

    fn go_neighbour(&self, target: &Target) -> Option<Plugin> {
        let first = self.plugins.first()?;
        // Networks that are kept apart would keep the Go container's apart too.
        let is_apart = |plugin: &Value| plugin["ingressPolicy"] == "isolated";
        if first["type"] != "bridge" || self.plugins.iter().any(is_apart) {
            return None;
        }
        // The bridge and its addresses, without what needs rules of its own.
        let mut request = json!({"cniVersion": VERSION, "name": self.network});
        for key in ["type", "bridge", "isGateway", "ipam"] {
            request[key] = first[key].clone();
        }
        if let Some(previous) = &target.result {
            request["prevResult"] = previous.clone();
        }
        let plugin = GoPlugins::sid().plugin("bridge").config(request);
        let plugin = plugin.container(&target.container).ifname(self.ifname);
        Some(match &target.netns {
            Some(netns) => plugin.env("CNI_NETNS", netns),
            None => plugin,
        })
    }
}
