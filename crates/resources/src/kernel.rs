//! The kernel as one call sees it: sockets opened when first needed and kept.

use std::time::Duration;

use podwire_netlink::nft::NftSocket;
use podwire_netlink::route::link_change::DeleteLink;
use podwire_netlink::route::monitor::Settled;
use podwire_netlink::route::{Device, Link, MacAddress, RouteSocket};
use podwire_plugin::{Handles, Sandbox};
use podwire_spec::error::{Error, ErrorCode};
use podwire_sys::lock::FileLock;
use podwire_sys::netns::NetNs;

use crate::moved_device::DeviceNetwork;
use crate::{common_lock, nft};

/// Handles of one plugin call: the host's namespace, and the sandbox's where
/// there is one.
pub struct Kernel {
    host: Option<RouteSocket>,
    container: Option<RouteSocket>,
    nft: Option<NftSocket>,
    sandbox: Option<NetNs>,
    home: Option<NetNs>,
    /// Indexes of links on the host that this call has looked up or made.
    host_indexes: Vec<(String, u32)>,
    pair: Option<Pair>,
    child: Option<Link>,
    carried: Option<DeviceNetwork>,
    shared_bridges: Option<FileLock>,
    own_bridges: Option<FileLock>,
}

/// The pair that this very call made. Later resources of the same plan need
/// not look for it again.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The interface's name in the container.
    pub ifname: String,
    /// Its index there.
    pub index: u32,
    /// Its MAC address.
    pub mac: MacAddress,
    /// The host end as it was made.
    pub host: Link,
}

/// Held shared while an ADD joins a bridge; exclusive while a failed one takes
/// a bridge or its address away again, so that it isn't taken from under
/// somebody who is about to join. `lock` is the name that may stay behind.
const BRIDGES_LOCK: &str = "/run/podwire/plugin/bridges/lock";

impl Kernel {
    /// Handles for a call about `sandbox`. Nothing is opened yet but the
    /// sandbox itself.
    ///
    /// # Errors
    /// Out of file descriptors.
    pub fn new(sandbox: Option<&Sandbox>) -> Result<Self, Error> {
        let netns = sandbox.and_then(Sandbox::netns);
        let sandbox = netns
            .map(NetNs::try_clone)
            .transpose()
            .map_err(|error| Error::io(format!("keeping the network namespace open: {error}")))?;
        Ok(Self {
            host: None,
            container: None,
            nft: None,
            sandbox,
            home: None,
            host_indexes: Vec::new(),
            pair: None,
            child: None,
            carried: None,
            shared_bridges: None,
            own_bridges: None,
        })
    }

    /// The host's links, addresses and routes.
    ///
    /// # Errors
    /// Out of file descriptors or memory.
    pub fn host(&mut self) -> Result<&mut RouteSocket, Error> {
        if self.host.is_none() {
            self.host = Some(RouteSocket::open().map_err(refused)?);
        }
        self.host.as_mut().ok_or_else(unreachable)
    }

    /// The host's packet filter. Before the first look at it, those of our calls that
    /// others overtook too often are let pass.
    ///
    /// # Errors
    /// The kernel has no `nf_tables`, or we may not use it.
    pub fn nft(&mut self) -> Result<&mut NftSocket, Error> {
        if self.nft.is_none() {
            nft::give_way();
            self.nft = Some(NftSocket::open().map_err(refused)?);
        }
        self.nft.as_mut().ok_or_else(unreachable)
    }

    /// Whether the sandbox is there to be looked into.
    pub fn has_sandbox(&self) -> bool {
        self.sandbox.is_some()
    }

    /// The sandbox's namespace.
    ///
    /// # Errors
    /// There is none.
    pub fn sandbox(&self) -> Result<&NetNs, Error> {
        self.sandbox.as_ref().ok_or_else(no_sandbox)
    }

    /// The host's links together with the sandbox, to make a link that spans
    /// both.
    ///
    /// # Errors
    /// There is no sandbox, or no socket can be had.
    pub fn host_and_sandbox(&mut self) -> Result<(&mut RouteSocket, &NetNs), Error> {
        self.host()?;
        let host = self.host.as_mut().ok_or_else(unreachable)?;
        Ok((host, self.sandbox.as_ref().ok_or_else(no_sandbox)?))
    }

    /// The sandbox's links, addresses and routes.
    ///
    /// # Errors
    /// There is no sandbox, or it can't be entered.
    pub fn container(&mut self) -> Result<&mut RouteSocket, Error> {
        if self.container.is_none() {
            self.in_sandbox(|| ())?;
        }
        self.container.as_mut().ok_or_else(unreachable)
    }

    /// The sandbox's links together with the host's namespace, to move a link
    /// there.
    ///
    /// # Errors
    /// There is no sandbox, or it can't be entered.
    pub fn container_and_home(&mut self) -> Result<(&mut RouteSocket, &NetNs), Error> {
        self.container()?;
        let container = self.container.as_mut().ok_or_else(unreachable)?;
        Ok((container, self.home.as_ref().ok_or_else(unreachable)?))
    }

    /// Runs `work` inside the sandbox's namespace: for sysctls, which have no
    /// socket that stays. The first time there, the socket is opened too.
    ///
    /// # Errors
    /// There is no sandbox, or it can't be entered.
    pub fn in_sandbox<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Error> {
        if self.container.is_some() {
            return self.inside(work);
        }
        let (socket, outcome) = self.inside(|| (RouteSocket::open(), work()))?;
        self.container = Some(socket.map_err(refused)?);
        Ok(outcome)
    }

    fn inside<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Error> {
        let entering = |error: std::io::Error| {
            Error::io(format!("entering the container's network namespace: {error}"))
        };
        if self.home.is_none() {
            self.home = Some(NetNs::current().map_err(entering)?);
        }
        let (Some(sandbox), Some(home)) = (&self.sandbox, &self.home) else {
            return Err(no_sandbox());
        };
        sandbox.run_from(home, work).map_err(entering)
    }

    /// Waits until the IPv6 addresses of a link in the sandbox are usable or
    /// found to be another's.
    ///
    /// # Errors
    /// There is no sandbox, or the kernel refused to tell. That the limit
    /// passed is no error but the answer.
    pub fn settle_addresses(
        &mut self,
        device: Device<'_>,
        limit: Duration,
    ) -> Result<Settled, Error> {
        self.container()?;
        let Some(mut socket) = self.container.take() else { return Err(unreachable()) };
        // The second socket, for notifications, is opened in the sandbox too.
        let settled = self.in_sandbox(|| socket.wait_settled(device, limit));
        self.container = Some(socket);
        settled?.map_err(refused)
    }

    /// The index of a link on the host that must be there, looked up once a
    /// call.
    ///
    /// # Errors
    /// It isn't, or the kernel refused to tell.
    pub fn host_index(&mut self, name: &str) -> Result<u32, Error> {
        if let Some((_, index)) = self.host_indexes.iter().find(|(known, _)| known == name) {
            return Ok(*index);
        }
        let link = self.host_link(name)?;
        self.remember_host(&link);
        Ok(link.index)
    }

    /// Spares later resources of this call the lookup.
    pub fn remember_host(&mut self, link: &Link) {
        self.host_indexes.push((link.name.clone(), link.index));
    }

    /// Spares later resources of this call the search for the pair.
    pub fn remember_pair(&mut self, pair: Pair) {
        self.pair = Some(pair);
    }

    /// The pair that this call made for `ifname`.
    pub fn made_pair(&self, ifname: &str) -> Option<&Pair> {
        self.pair.as_ref().filter(|pair| pair.ifname == ifname)
    }

    /// Spares later resources of this call the search for the interface that
    /// it made in the container, where that is no end of a pair.
    pub fn remember_child(&mut self, link: Link) {
        self.child = Some(link);
    }

    /// The interface that this call made as `ifname` in the container, where
    /// that is no end of a pair.
    pub fn made_child(&self, ifname: &str) -> Option<&Link> {
        self.child.as_ref().filter(|link| link.name == ifname)
    }

    /// Keeps what a device had on the host before this call moved it.
    pub fn carry(&mut self, network: DeviceNetwork) {
        self.carried = Some(network);
    }

    /// What the device that this call moved had on the host.
    pub fn carried(&self) -> Option<&DeviceNetwork> {
        self.carried.as_ref()
    }

    /// The index of the host end that this call made.
    pub(crate) fn pair_index(&self) -> Option<u32> {
        self.pair.as_ref().map(|pair| pair.host.index)
    }

    /// The index of a link in the container that must be there.
    ///
    /// # Errors
    /// It isn't, or the kernel refused to tell.
    pub fn container_index(&mut self, name: &str) -> Result<u32, Error> {
        let child = self.made_child(name).map(|link| link.index);
        match self.made_pair(name).map(|pair| pair.index).or(child) {
            Some(index) => Ok(index),
            None => Ok(self.container_link(name)?.index),
        }
    }

    /// Announces, until this call ends, that it joins a bridge: meanwhile no
    /// failed ADD takes a bridge or its address away. Where the lock can't be
    /// written (rootless), the call goes on without.
    ///
    /// # Errors
    /// Code 11 when one that does so doesn't end.
    pub(crate) fn share_bridges(&mut self) -> Result<(), Error> {
        if self.shared_bridges.is_none() {
            let lock = FileLock::shared(BRIDGES_LOCK, common_lock::WAIT);
            self.shared_bridges = common_lock::granted(lock, "joining a bridge")?;
        }
        Ok(())
    }

    /// Whether nobody else is joining a bridge, from now until this call ends.
    pub(crate) fn has_bridges_alone(&mut self) -> bool {
        if self.own_bridges.is_none() {
            self.shared_bridges = None;
            self.own_bridges = FileLock::exclusive(BRIDGES_LOCK, Duration::ZERO).ok();
        }
        self.own_bridges.is_some()
    }

    /// A link on the host that must be there.
    ///
    /// # Errors
    /// It isn't, or the kernel refused to tell.
    pub fn host_link(&mut self, name: &str) -> Result<Link, Error> {
        self.host()?
            .link_by_name(name)
            .map_err(refused)?
            .ok_or_else(|| Error::internal(format!("there is no interface {name} on the host")))
    }

    /// A link in the container that must be there.
    ///
    /// # Errors
    /// It isn't, or the kernel refused to tell.
    pub fn container_link(&mut self, name: &str) -> Result<Link, Error> {
        self.container()?.link_by_name(name).map_err(refused)?.ok_or_else(|| {
            Error::internal(format!("there is no interface {name} in the container"))
        })
    }
}

impl Handles for Kernel {
    fn open(sandbox: Option<&Sandbox>) -> Result<Self, Error> {
        Self::new(sandbox)
    }
}

/// A refusal of the kernel as a CNI error. What passes by itself is code 11,
/// so that a runtime may try again; the rest is 999, as the reference gives.
#[allow(clippy::needless_pass_by_value, reason = "used as map_err(refused)")]
pub fn refused(error: podwire_netlink::Error) -> Error {
    let code = if error.is_transient() { ErrorCode::TryAgainLater } else { ErrorCode::Internal };
    let details = if error.is_permission() {
        "run as root, or with CAP_NET_ADMIN in the network namespace's user namespace"
    } else {
        ""
    };
    Error::new(code, error.to_string()).with_details(details)
}

/// Deletes a link of the host; one that is gone already is fine.
pub(crate) fn delete(kernel: &mut Kernel, link: &Link) -> Result<(), Error> {
    match kernel.host()?.apply(&DeleteLink(link.device())) {
        Err(error) if !error.is_not_found() => Err(refused(error)),
        _ => Ok(()),
    }
}

fn no_sandbox() -> Error {
    Error::new(ErrorCode::InvalidNamespace, "there is no network namespace to work in")
        .with_details("CNI_NETNS must name one")
}

/// A socket that was just stored isn't there: can't happen.
fn unreachable() -> Error {
    Error::internal("a bug in Podwire: a socket vanished")
}
