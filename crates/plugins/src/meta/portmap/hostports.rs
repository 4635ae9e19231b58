//! The mappings of one attachment as a resource: both IP versions in one
//! transaction.

use podwire_netlink::Error as NetlinkError;
use podwire_netlink::nft::{Batch, Element, NftSocket};
use podwire_plugin::{Belongs, Difference, Made, OwnerMark, Resource};
use podwire_resources::nft::{Tries, owner_of, owners};
use podwire_resources::{Kernel, refused};
use podwire_spec::Error;
use podwire_spec::id::AttachmentKey;

use super::condition::Condition;
use super::connections;
use super::departure::Departure;
use super::forwarding::{Entry, Forwarding};
use super::go_holder;
use super::holder;
use super::layout::{self, VERSIONS};
use super::removal;
use super::set_mark::SetMark;
use super::structure::Structure;
use super::takeover::GoMappings;

/// Ports that a description names before it says that there are more.
const PORTS_NAMED: usize = 3;

/// What one attachment's mappings are to be.
pub(super) struct HostPorts {
    /// Whose they are.
    pub(super) key: AttachmentKey,
    /// At most one for each IP version; none on DEL.
    pub(super) forwardings: Vec<(Forwarding, Option<Condition>)>,
    /// Rules for the host's own chain that marks packets, if it is used.
    pub(super) set_mark: Option<SetMark>,
}

/// How an attempt to commit ended.
enum Attempt {
    Done,
    /// Others changed the tables in between.
    Overtaken(NetlinkError),
    /// Something is there that mustn't be, or the reverse.
    Unexpected(NetlinkError),
}

impl HostPorts {
    fn owner(&self) -> OwnerMark {
        OwnerMark::of(&self.key)
    }

    /// One transaction. The quick way takes it that the tables are in order
    /// when their rules are, and that nobody holds the ports; when the kernel
    /// objects, the thorough way looks at everything.
    fn attempt(
        &self,
        kernel: &mut Kernel,
        link: Option<u32>,
        thoroughly: bool,
    ) -> Result<Attempt, Error> {
        let generation = kernel.nft()?.generation().map_err(refused)?;
        let mut batch = Batch::new();
        let mut looked = thoroughly;
        for version in VERSIONS {
            let wanted = self.forwardings.iter().find(|(one, _)| one.version == version);
            let successor = wanted.map(|(forwarding, _)| forwarding);
            let mut departure = Departure::new(version);
            let mut heirs = Vec::new();
            if thoroughly {
                let owner = self.owner();
                let former = departure.owner(kernel.nft()?, &mut batch, &owner, successor);
                heirs = former.map_err(refused)?.map(|held| held.heirs).unwrap_or_default();
            } else if successor.is_none() {
                continue;
            }
            let structure = Structure::observe(kernel.nft()?, version).map_err(refused)?;
            if let Some((forwarding, condition)) = wanted {
                looked |= structure.mend(&mut batch, forwarding, condition.as_ref(), thoroughly);
                let mut entries = forwarding.entries();
                if thoroughly {
                    entries =
                        holder::resolve(kernel, &mut batch, &mut departure, forwarding, entries)?;
                }
                push_elements(&mut batch, forwarding, &entries, &forwarding.record(link, &heirs));
            }
            departure.push(kernel.nft()?, &mut batch, &structure, successor).map_err(refused)?;
        }
        if let Some(set_mark) = &self.set_mark {
            looked |= set_mark.push(kernel.nft()?, &mut batch, &self.forwardings)?;
        }
        if looked {
            batch.require_generation(generation);
        }
        Ok(match kernel.nft()?.commit(&batch) {
            Ok(()) => Attempt::Done,
            Err(error) if error.is_busy() || error.is_exists() || error.is_not_found() => {
                Attempt::Unexpected(error)
            }
            Err(error) if error.is_transient() => Attempt::Overtaken(error),
            Err(error) => return Err(refused(error)),
        })
    }

    fn go_mappings(&self) -> GoMappings {
        GoMappings {
            network: self.key.network.as_str().to_owned(),
            container: self.key.container_id.as_str().to_owned(),
            addresses: self.forwardings.iter().map(|(one, _)| one.address).collect(),
            by_container: true,
        }
    }

    /// The host's end of the container's interface: while it stands the
    /// container does.
    fn link(&self, kernel: &mut Kernel) -> Option<u32> {
        let link = kernel.container().ok()?.link_by_name(self.key.ifname.as_str()).ok()??;
        link.parent.filter(|_| link.is_veth())
    }
}

impl Resource<Kernel> for HostPorts {
    fn describe(&self) -> String {
        let mut ports = Vec::new();
        for mapping in self.forwardings.iter().flat_map(|(forwarding, _)| &forwarding.mappings) {
            let port = mapping.host_side();
            if !ports.contains(&port) {
                ports.push(port);
            }
            if ports.len() > PORTS_NAMED {
                break;
            }
        }
        let count = ports.len();
        ports.truncate(PORTS_NAMED);
        if count > ports.len() {
            ports.push("more".to_owned());
        }
        if ports.is_empty() {
            return "port mappings".to_owned();
        }
        format!("mapping of {}", ports.join(", "))
    }

    fn belongs(&self) -> Belongs {
        Belongs::Attachment
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        for (forwarding, _) in &self.forwardings {
            go_holder::make_way(kernel, forwarding)?;
        }
        let link = self.link(kernel);
        let mut tries = Tries::begin();
        let mut thoroughly = false;
        loop {
            match self.attempt(kernel, link, thoroughly)? {
                Attempt::Done => break,
                Attempt::Unexpected(_) if !thoroughly => thoroughly = true,
                Attempt::Unexpected(error) | Attempt::Overtaken(error) if tries.again(&error) => {}
                // If it isn't transient: looked at in one generation and refused in
                // the same, so nobody interfered.
                Attempt::Unexpected(error) | Attempt::Overtaken(error) => {
                    return Err(refused(error));
                }
            }
        }
        for (forwarding, _) in &self.forwardings {
            connections::forget(kernel, forwarding.address, &forwarding.mappings);
        }
        Ok(Made::Created)
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        let mut differences = Vec::new();
        for (forwarding, condition) in &self.forwardings {
            let socket = kernel.nft()?;
            let id = layout::table(forwarding.version);
            let record = owners::read(socket, id, &forwarding.owner).map_err(refused)?;
            if record.is_none() && self.go_mappings().cover(socket, forwarding)? {
                continue;
            }
            let structure = Structure::observe(socket, forwarding.version).map_err(refused)?;
            differences.extend(structure.differences(forwarding, condition.as_ref()));
            differences.extend(missing_elements(socket, forwarding).map_err(refused)?);
        }
        if let Some(set_mark) = &self.set_mark {
            differences.extend(set_mark.check(kernel.nft()?, &self.forwardings)?);
        }
        Ok(differences)
    }

    fn remove(&self, kernel: &mut Kernel) -> Result<(), Error> {
        removal::remove(kernel, &self.owner())
    }
}

/// Adds the elements to a batch, and what is written down about them.
fn push_elements(
    batch: &mut Batch,
    forwarding: &Forwarding,
    entries: &[Entry],
    record: &[Element],
) {
    let id = layout::table(forwarding.version);
    for group in entries.chunk_by(|one, other| one.map == other.map) {
        let Some(first) = group.first() else { continue };
        let elements = group.iter().map(|entry| &entry.element);
        batch.create_elements(id.set(&first.map), elements);
    }
    batch.create_elements(id.set(owners::NAME), record);
}

fn missing_elements(
    socket: &mut NftSocket,
    forwarding: &Forwarding,
) -> Result<Vec<Difference>, NetlinkError> {
    let id = layout::table(forwarding.version);
    let mut differences = Vec::new();
    for Entry { map, element, what, is_port } in forwarding.entries() {
        let role = if is_port { "forwarding" } else { "masquerading" };
        let object = format!("{role} of {what} (nftables map {})", id.set(&map));
        let Some(found) = socket.element(id.set(&map), &element)? else {
            differences.push(Difference::missing(object));
            continue;
        };
        if owner_of(&found.userdata) != Some(forwarding.owner) {
            if let Some(other) = holder::of(socket, forwarding.version, &found)?
                && forwarding.is_same_container(&other)
            {
                continue;
            }
            let found = found.comment().unwrap_or_else(|| "no owner".to_owned());
            differences.push(Difference::new(object, "owned by this attachment", found));
        } else if found.value != element.value {
            differences.push(Difference::new(object, "as it was made", "another target"));
        }
    }
    if owners::read(socket, id, &forwarding.owner)?.is_none() {
        differences.push(Difference::missing(format!(
            "this attachment's entry in nftables set {}",
            id.set(owners::NAME)
        )));
    }
    Ok(differences)
}
