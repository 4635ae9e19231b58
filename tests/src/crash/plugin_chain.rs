//! A chain of plugins, called by the harness as a runtime calls them.

use std::path::Path;

use podwire_testkit::kill::Killed;
use podwire_testkit::{GoPlugins, Output, Plugin, Refusal, Refused, World};
use serde_json::{Value, json};

use super::place::Place;
use super::subject::{Subject, Target, Verb, done};

/// The version that requests are in.
const VERSION: &str = "1.1.0";

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

    fn request(&self, index: usize, target: Option<&Target>, previous: Option<&Value>) -> Value {
        let mut request = self.plugins[index].clone();
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
        let mut previous = None;
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
        let previous = self.up_to(verb, target, program);
        let call = self.call(verb.as_str(), program, target, previous.as_ref());
        let refused = call.refuse_at(request, refusal);
        if verb == Verb::Add {
            let is_done = refused.output.code == 0;
            target.result = if is_done { Some(refused.output.json()) } else { previous };
        }
        refused
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

    fn kill(&self, verb: Verb, target: &Target, valid: &[&str], place: Place) -> Killed {
        if verb == Verb::Gc {
            for index in 0..place.program {
                self.collection(index, valid).run().success();
            }
            return self.collection(place.program, valid).kill_at(place.call);
        }
        let previous = self.up_to(verb, target, place.program);
        let call = self.call(verb.as_str(), place.program, target, previous.as_ref());
        call.kill_at(place.call)
    }

    /// Runs what comes before a plugin in a verb; gives what it gets as prevResult.
    fn up_to(&self, verb: Verb, target: &Target, program: usize) -> Option<Value> {
        let mut previous = None;
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
    }

    fn is_seen_from_the_host(&self) -> bool {
        self.parents().next().is_none() && self.ifname != "lo"
    }

    fn programs(&self) -> usize {
        self.plugins.len()
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
    ) -> Killed {
        self.installed(world.plugin_directory()).kill(verb, target, valid, place)
    }

    fn check(&self, world: &World, target: &Target) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).check(target)
    }

    fn gc(&self, world: &World, valid: &[&str]) -> Result<(), Box<Output>> {
        self.installed(world.plugin_directory()).gc(valid)
    }

    fn go_neighbour(&self, target: &Target) -> Option<Plugin> {
        let first = self.plugins.first()?;
        if first["type"] != "bridge" {
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
