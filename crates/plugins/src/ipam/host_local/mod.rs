//! `host-local`: addresses of this host's ranges, each reserved by a file.
//!
//! On the disk it is the Go plugin: names, contents and lock are the same, and
//! both may run on one directory. What is different:
//! - a reservation gets its name when its content is complete, so a crash
//!   loses no address ([`pool`]);
//! - an index beside it makes ADD and DEL independent of how many addresses
//!   are reserved ([`index`]), and knows what a reboot has made worthless
//!   ([`reboot`]);
//! - a failed ADD takes back what it made itself, and only that
//!   ([`allocate`]);
//! - CHECK, STATUS and GC do what they say.
//!
//! The data directory must be local: locks and times of change are trusted.

mod allocate;
mod candidates;
mod check;
mod config;
mod disjoint;
mod errors;
mod gc;
mod index;
mod ledger;
mod pool;
mod range;
mod reboot;
mod reservation;
mod resolv_conf;
mod status;

use std::path::Path;

use podwire_plugin::{Attachment, Description, Plugin, Request, Role, Undo};
use podwire_spec::Error;
use podwire_spec::id::NetworkName;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::{CniResult, IpConfig};

use config::Config;
use ledger::{Ledger, Purpose};
use pool::Pool;
use reservation::Owner;

/// The `host-local` IPAM plugin.
#[derive(Debug, Clone, Copy)]
pub struct HostLocal;

impl Plugin for HostLocal {
    fn description(&self) -> Description {
        Description::new("host-local", Role::Ipam)
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let config = Config::parse(request.config, request.version)?;
        let arguments = request.arguments(&["IP"])?;
        let requested = config::requested(request.config, arguments.get("IP"))?;
        let dns = config.resolv_conf.as_deref().map(resolv_conf::read).transpose()?;
        let network = attachment.network();
        let owner = owner_of(attachment);
        let pool = Pool::open_or_create(&config.data_dir, network)
            .map_err(|error| errors::path(network, &error))?;
        let mut ledger = lock(pool, &config.data_dir, Purpose::Allocate)?;
        let made = allocate::allocate(&mut ledger, &config.sets, &owner, &requested)?;
        drop(ledger);
        let addresses: Vec<_> = made.iter().map(|one| one.address.addr()).collect();
        let data_dir = config.data_dir;
        undo.push(format!("addresses {addresses:?} of network {network}"), move || {
            let Some(mut ledger) = open(&data_dir, network, Purpose::Free)? else { return Ok(()) };
            for address in addresses {
                allocate::release_one(&mut ledger, address, &owner)
                    .map_err(|error| errors::path(network, &error))?;
            }
            Ok(())
        });
        let ip = |one: allocate::Allocation| IpConfig {
            gateway: one.gateway,
            ..IpConfig::new(one.address)
        };
        Ok(CniResult {
            ips: made.into_iter().map(ip).collect(),
            routes: config.routes,
            dns: dns.unwrap_or_default(),
            ..CniResult::default()
        })
    }

    /// Needs nothing of the configuration but the network's name and
    /// `ipam.dataDir`: ranges that are wrong by now, and `CNI_ARGS`, are not
    /// looked at.
    fn del(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        let network = attachment.network();
        let data_dir = config::data_dir(request.config)?;
        let Some(mut ledger) = open(&data_dir, network, Purpose::Free)? else { return Ok(()) };
        let failed = |error| errors::path(network, &error);
        let mut held = ledger.held_by(&owner_of(attachment)).map_err(failed)?;
        if held.is_empty() {
            let container = Owner::Container(attachment.container_id().as_str().to_owned());
            held = ledger.held_by(&container).map_err(failed)?;
        }
        // One address that can't be freed doesn't keep the others.
        let outcomes: Vec<_> = held.iter().map(|one| ledger.free(one)).collect();
        outcomes.into_iter().collect::<Result<_, _>>().map_err(failed)
    }

    fn check(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        check::check(request, attachment)
    }

    fn status(&self, request: &Request<'_>) -> Result<(), Error> {
        status::status(request.config, request.version)
    }

    fn gc(&self, request: &Request<'_>, valid: &ValidAttachments) -> Result<(), Error> {
        let network = &request.config.name;
        let data_dir = config::data_dir(request.config)?;
        match open(&data_dir, network, Purpose::Free)? {
            Some(mut ledger) => gc::collect(&mut ledger, valid),
            None => Ok(()),
        }
    }
}

/// How many name servers a file in the form of resolv.conf(5) names.
pub(crate) fn servers_in(text: &str) -> usize {
    resolv_conf::parse(text).nameservers.len()
}

fn owner_of(attachment: &Attachment) -> Owner {
    Owner::attachment(attachment.container_id().as_str(), attachment.ifname().as_str())
}

/// Opens and locks the pool of a network, if it has one.
fn open(data_dir: &Path, network: &NetworkName, purpose: Purpose) -> Result<Option<Ledger>, Error> {
    let pool = Pool::open(data_dir, network).map_err(|error| errors::path(network, &error))?;
    pool.map(|pool| lock(pool, data_dir, purpose)).transpose()
}

fn lock(pool: Pool, data_dir: &Path, purpose: Purpose) -> Result<Ledger, Error> {
    let network = pool.network().clone();
    Ledger::open(pool, data_dir, purpose).map_err(|error| errors::ledger(&network, &error))
}
