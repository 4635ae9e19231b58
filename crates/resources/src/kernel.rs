//! The kernel as one call sees it: sockets opened when first needed and kept.

use podwire_netlink::nft::NftSocket;
use podwire_netlink::route::monitor::Settled;
use podwire_netlink::route::{Device, Link, RouteSocket};
use std::time::Duration;

use podwire_plugin::Sandbox;
use podwire_spec::error::{Error, ErrorCode};
use podwire_sys::netns::NetNs;

/// Handles of one plugin call: the host's namespace, and the sandbox's where
/// there is one.
pub struct Kernel {
    host: Option<RouteSocket>,
    container: Option<RouteSocket>,
    nft: Option<NftSocket>,
    sandbox: Option<NetNs>,
    home: Option<NetNs>,
}

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
        Ok(Self { host: None, container: None, nft: None, sandbox, home: None })
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

    /// The host's packet filter.
    ///
    /// # Errors
    /// The kernel has no `nf_tables`, or we may not use it.
    pub fn nft(&mut self) -> Result<&mut NftSocket, Error> {
        if self.nft.is_none() {
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

    /// The sandbox's links, addresses and routes.
    ///
    /// # Errors
    /// There is no sandbox, or it can't be entered.
    pub fn container(&mut self) -> Result<&mut RouteSocket, Error> {
        if self.container.is_none() {
            let socket = self.in_sandbox(RouteSocket::open)?.map_err(refused)?;
            self.container = Some(socket);
        }
        self.container.as_mut().ok_or_else(unreachable)
    }

    /// Runs `work` inside the sandbox's namespace: for sysctls, which have no
    /// socket that stays.
    ///
    /// # Errors
    /// There is no sandbox, or it can't be entered.
    pub fn in_sandbox<T>(&mut self, work: impl FnOnce() -> T) -> Result<T, Error> {
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

fn no_sandbox() -> Error {
    Error::new(ErrorCode::InvalidNamespace, "there is no network namespace to work in")
        .with_details("CNI_NETNS must name one")
}

/// A socket that was just stored isn't there: can't happen.
fn unreachable() -> Error {
    Error::internal("a bug in Podwire: a socket vanished")
}
