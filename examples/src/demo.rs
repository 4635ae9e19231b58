//! The story that `cargo xtask demo` tells: two containers on a network,
//! wired, reachable, checked, collected and removed, on real namespaces.
//!
//! `demo PODWIRE PLUGIN_DIR CONF_DIR`. Exit code 0 says that every line of it
//! was true.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use podwire_testkit::{HostState, Netns, World, probe};
use serde_json::Value;

/// The page that the container serves.
const PAGE: &str = "hello from the container";
/// Where the host listens for it.
const HOST_PORT: u16 = 8080;
/// How long a probe may take.
const PATIENCE: Duration = Duration::from_secs(5);

type Told = Result<String, String>;

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [podwire, plugins, networks] = arguments.as_slice() else {
        say("demo PODWIRE PLUGIN_DIR CONF_DIR");
        return ExitCode::from(2);
    };
    let story = Story {
        world: World::new(),
        podwire: podwire.clone(),
        plugins: plugins.clone(),
        networks: networks.clone(),
    };
    say(
        "Two containers on a network, in namespaces of their own: nothing of this machine is touched.\n",
    );
    match story.tell() {
        Ok(took) => {
            say(&format!("\nAll of it was true, in {:.0} ms.", took.as_secs_f64() * 1000.0));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("\nThis was not: {error}"));
            ExitCode::FAILURE
        }
    }
}

struct Story {
    world: World,
    podwire: PathBuf,
    plugins: PathBuf,
    networks: PathBuf,
}

impl Story {
    fn tell(&self) -> Result<Duration, String> {
        let started = Instant::now();
        let (web, client) = (self.world.netns("web"), self.world.netns("client"));
        let outside = self.outside();
        let before = self.world.snapshot();

        let ports = format!(
            r#"{{"portMappings":[{{"hostPort":{HOST_PORT},"containerPort":80,"protocol":"tcp"}}]}}"#
        );
        step("attach web, with host port 8080", || self.add("web", &["--cap-args", &ports]))?;
        step("attach client", || self.add("client", &[]))?;
        step("list the attachments", || self.list(2))?;
        let address = address_of(&web)?;
        step("client reaches web", || ping(&client, &address))?;
        let server = serve(&web)?;
        step("a machine outside fetches a page", || fetch(&outside))?;
        step("CHECK both", || {
            self.podwire_ok(&["check", "podnet", "/run/netns/web", "--container-id", "web"])?;
            self.podwire_ok(&["check", "podnet", "/run/netns/client", "--container-id", "client"])?;
            Ok("as they were made".to_owned())
        })?;

        say("\nSomebody breaks it:");
        step("remove web's default route", || {
            web.exec(&["ip", "route", "delete", "default"]);
            Ok("ip route delete default".to_owned())
        })?;
        step("CHECK names it", || self.check_fails("web", "route to 0.0.0.0/0"))?;
        step("put it back, CHECK again", || self.mend_route(&web))?;

        say("\nSomebody forgets a DEL:");
        step("client's namespace dies", || {
            client.remove();
            Ok(format!("{} still reserved", reservations()))
        })?;
        step("GC frees what is not alive", || self.collect())?;

        say("\nThe end:");
        step("detach web", || {
            self.podwire_ok(&["del", "podnet", "/run/netns/web", "--container-id", "web"])
        })?;
        drop(server);
        web.remove();
        step("nothing is left", || self.nothing_left(&before))?;
        Ok(started.elapsed())
    }

    /// A machine on the other side of a cable.
    fn outside(&self) -> Netns {
        let outside = self.world.netns("outside");
        let run = |words: &str| {
            self.world.exec(&words.split(' ').collect::<Vec<_>>());
        };
        run("ip link add uplink type veth peer name eth0 netns outside");
        run("ip address add 192.0.2.1/24 dev uplink");
        run("ip link set uplink up");
        run("ip -n outside address add 192.0.2.2/24 dev eth0");
        run("ip -n outside link set eth0 up");
        outside
    }

    fn add(&self, name: &str, more: &[&str]) -> Told {
        let netns = format!("/run/netns/{name}");
        let mut arguments = vec!["add", "podnet", netns.as_str(), "--container-id", name];
        arguments.extend(more);
        let result = self.podwire_ok(&arguments)?;
        let result: Value = serde_json::from_str(&result).map_err(|error| error.to_string())?;
        let ips = result.get("ips").and_then(Value::as_array);
        let addresses: Vec<_> = ips
            .into_iter()
            .flatten()
            .filter_map(|ip| ip.get("address").and_then(Value::as_str))
            .collect();
        if addresses.len() != 2 {
            return Err(format!("expected an address of each family, got {addresses:?}"));
        }
        Ok(format!("eth0 has {}", addresses.join(" and ")))
    }

    fn list(&self, expected: usize) -> Told {
        let listed = self.podwire_ok(&["list", "--output", "json"])?;
        let listed: Value = serde_json::from_str(&listed).map_err(|error| error.to_string())?;
        let rows =
            listed.as_array().or_else(|| listed.get("attachments").and_then(Value::as_array));
        match rows.map(Vec::len) {
            Some(count) if count == expected => Ok(format!("{count} of them")),
            other => Err(format!("expected {expected} attachments, listed {other:?}")),
        }
    }

    fn mend_route(&self, netns: &Netns) -> Told {
        netns.exec(&["ip", "route", "add", "default", "via", "10.89.0.1"]);
        self.podwire_ok(&["check", "podnet", "/run/netns/web", "--container-id", "web"])?;
        Ok("as it was made".to_owned())
    }

    fn check_fails(&self, name: &str, expected: &str) -> Told {
        let netns = format!("/run/netns/{name}");
        let output = self.podwire(&["check", "podnet", &netns, "--container-id", name]);
        if output.code == 0 {
            return Err("CHECK did not notice".to_owned());
        }
        let told = output.stderr.lines().find(|line| line.contains(expected));
        let from = told.and_then(|line| line.find(expected).and_then(|at| line.get(at..)));
        let part = from.and_then(|text| text.split(['\n', ';']).next());
        part.map(|text| text.trim().to_owned())
            .ok_or_else(|| format!("CHECK did not name {expected}: {}", output.stderr))
    }

    fn collect(&self) -> Told {
        self.podwire_ok(&["gc", "podnet", "--keep-live"])?;
        match reservations() {
            2 => Ok("2 addresses, those of web, remain".to_owned()),
            left => Err(format!("{left} addresses are reserved, expected 2")),
        }
    }

    fn nothing_left(&self, before: &HostState) -> Told {
        let left = self.world.snapshot().since(before).beyond_residue(&["podnet0"]);
        let left = left.to_string();
        if left.trim().is_empty() { Ok("but the empty bridge".to_owned()) } else { Err(left) }
    }

    fn podwire_ok(&self, arguments: &[&str]) -> Told {
        let output = self.podwire(arguments);
        if output.code == 0 {
            return Ok(output.stdout);
        }
        Err(format!("podwire {}: {}", arguments.join(" "), output.stderr.trim()))
    }

    fn podwire(&self, arguments: &[&str]) -> podwire_testkit::Output {
        let podwire = self.podwire.display().to_string();
        let plugins = self.plugins.display().to_string();
        let networks = self.networks.display().to_string();
        let mut command = vec![podwire.as_str()];
        command.extend(arguments);
        command.extend(["--plugin-dir", &plugins, "--conf-dir", &networks]);
        self.world.try_exec(&command)
    }
}

fn address_of(netns: &Netns) -> Told {
    let shown = netns.ip_json(&["-4", "address", "show", "dev", "eth0"]);
    let address = shown.pointer("/0/addr_info/0/local").and_then(Value::as_str);
    address.map(str::to_owned).ok_or_else(|| "web's eth0 has no address".to_owned())
}

fn ping(from: &Netns, address: &str) -> Told {
    let address: IpAddr = address.parse().map_err(|_| format!("{address} is no address"))?;
    match probe::ping(from, address, PATIENCE) {
        Ok(_) => Ok(format!("{address} answers")),
        Err(error) => Err(format!("{address} does not answer: {error}")),
    }
}

/// Addresses that host-local holds for somebody.
fn reservations() -> usize {
    let names = std::fs::read_dir("/var/lib/cni/networks/podnet").into_iter().flatten();
    let is_address = |name: &std::ffi::OsStr| name.to_string_lossy().parse::<IpAddr>().is_ok();
    names.flatten().filter(|entry| is_address(&entry.file_name())).count()
}

/// A web server in the container, until it is dropped.
fn serve(netns: &Netns) -> Result<std::thread::JoinHandle<()>, String> {
    let listener = netns
        .run(|| TcpListener::bind("0.0.0.0:80"))
        .map_err(|error| format!("serving in the container: {error}"))?;
    Ok(std::thread::spawn(move || {
        if let Ok((mut stream, _)) = listener.accept() {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let length = PAGE.len();
            let _ = write!(stream, "HTTP/1.0 200 OK\r\nContent-Length: {length}\r\n\r\n{PAGE}");
        }
    }))
}

fn fetch(from: &Netns) -> Told {
    let address = SocketAddr::from(([192, 0, 2, 1], HOST_PORT));
    match probe::http_page(from, address, PATIENCE, PATIENCE) {
        Ok(answer) if answer.ends_with(PAGE) => Ok(format!("http://{address}/ says \"{PAGE}\"")),
        Ok(answer) => Err(format!("http://{address}/ says {answer:?}")),
        Err(error) => Err(format!("http://{address}/: {error}")),
    }
}

/// One line of the story: what is done, how long it took, what came of it.
fn step(what: &str, work: impl FnOnce() -> Told) -> Result<(), String> {
    let started = Instant::now();
    let outcome = work();
    let took = started.elapsed().as_secs_f64() * 1000.0;
    match outcome {
        Ok(text) => {
            say(&format!("  ok  {what:<34} {took:>7.1} ms  {}", text.trim()));
            Ok(())
        }
        Err(error) => Err(format!("{what}: {error}")),
    }
}

fn say(line: &str) {
    let mut out = std::io::stdout();
    let _ = writeln!(out, "{line}");
}
