//! Booting a world again: what the kernel knew is gone, what lay on the disk is not.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use podwire_sys::netns::NamedNetNs;
use podwire_testkit::World;

/// Where namespaces have their names.
const NAMESPACES: &str = "/run/netns";

/// Where the kernel says which boot this is.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Sysctls that plugins switch on.
const FORWARDING: [&[&str]; 2] =
    [&["net", "ipv4", "ip_forward"], &["net", "ipv6", "conf", "all", "forwarding"]];

/// A world's boots. The kernel's boot id is covered by a file of ours in the world's
/// own mount namespace.
pub struct Boots<'a> {
    world: &'a World,
    path: PathBuf,
    count: Cell<u64>,
    /// Links that were there at the first boot, as hardware is.
    hardware: Vec<String>,
    /// Namespaces that were there then: other machines, which keep their links.
    machines: Vec<OsString>,
}

impl<'a> Boots<'a> {
    /// The first boot.
    pub fn new(world: &'a World) -> Self {
        let path = world.write("boot_id", "");
        let (hardware, machines) = (links(world), namespaces());
        let boots = Self { world, path, count: Cell::new(0), hardware, machines };
        boots.next_id();
        podwire_sys::mount::bind(&boots.path, Path::new(BOOT_ID)).unwrap();
        boots
    }

    /// The next boot: other id, nothing in the kernel, nothing in /run, and all
    /// reservations older than the boot. Other files keep their times: what is known
    /// beside a record is known of the record of that very time.
    pub fn reboot(&self) {
        self.clear_kernel();
        remove_below("/run/podwire");
        let long_ago = SystemTime::UNIX_EPOCH + Duration::from_hours(24);
        let files =
            podwire_sys::file::walk_regular_files(Path::new("/var/lib/cni/networks"), 8, 100_000);
        for path in files.unwrap() {
            let file = std::fs::File::options().write(true).open(path).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        self.next_id();
    }

    /// Makes the world as it was when it was new.
    pub fn renew(&self) {
        self.clear_kernel();
        remove_below("/run/podwire");
        remove_below("/var/lib/cni");
    }

    fn next_id(&self) {
        self.count.set(self.count.get() + 1);
        // In place: it is mounted.
        let id = format!("00000000-1111-2222-3333-{:012}\n", self.count.get());
        std::fs::write(&self.path, id).unwrap();
    }

    fn clear_kernel(&self) {
        for name in namespaces() {
            // The kernel removes a namespace's links later, and until then the address of
            // an ipvlan is taken. Not every container was attached.
            if !self.machines.contains(&name) {
                let name = name.display().to_string();
                self.world.try_exec(&["ip", "-n", &name, "link", "del", "eth0"]);
            }
            NamedNetNs::remove(Path::new(NAMESPACES).join(name)).unwrap();
        }
        for name in links(self.world) {
            if !self.hardware.contains(&name) {
                // It may go by itself, with its other end.
                self.world.try_exec(&["ip", "link", "del", &name]);
            }
        }
        self.world.exec(&["nft", "flush", "ruleset"]);
        for key in FORWARDING {
            podwire_sys::sysctl::write(key, "0").unwrap();
        }
    }
}

fn namespaces() -> Vec<OsString> {
    let entries = std::fs::read_dir(NAMESPACES).unwrap();
    entries.map(|entry| entry.unwrap().file_name()).collect()
}

fn links(world: &World) -> Vec<String> {
    let links = world.ip_json(&["link", "show"]);
    let links = links.as_array().unwrap().iter();
    links.map(|link| link["ifname"].as_str().unwrap().to_owned()).collect()
}

fn remove_below(directory: &str) {
    for entry in std::fs::read_dir(directory).into_iter().flatten() {
        std::fs::remove_dir_all(entry.unwrap().path()).unwrap();
    }
}
