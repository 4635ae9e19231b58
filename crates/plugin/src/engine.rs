//! The one engine that turns an [`Inventory`] into the verbs.

use std::panic::{AssertUnwindSafe, catch_unwind};

use podwire_spec::error::{Error, ErrorCode};
use podwire_spec::operation::Operation;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::CniResult;

use crate::attachment::Attachment;
use crate::delegate::Delegate;
use crate::inventory::{
    Addresses, Belongs, Difference, Facts, Handles, Inventory, Made, Plan, Valid,
};
use crate::lock::{self, lock};
use crate::plugin::{Description, Plugin};
use crate::request::Request;
use crate::undo::Undo;

/// What to do about an attachment that isn't as it was made.
const REMEDY: &str = "detach the container and attach it again (DEL, then ADD)";

/// Differences that a CHECK error names before it only counts the rest.
const DIFFERENCES_SHOWN: usize = 5;

/// An [`Inventory`] as a [`Plugin`].
pub struct Inventoried<I>(pub I);

impl<I: Inventory> Plugin for Inventoried<I> {
    fn description(&self) -> Description {
        self.0.description()
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let inventory = &self.0;
        let config = inventory.parse(request, Operation::Add)?;
        let _lock = lock(attachment)?;
        let mut kernel = I::Kernel::open(Some(&attachment.sandbox))?;
        let facts = Facts { operation: Operation::Add, result: None };
        let mut foundation = Making::new(inventory.foundation(&config, attachment, &facts)?);
        let outcome = foundation.make(&mut kernel).and_then(|()| {
            catch_unwind(AssertUnwindSafe(|| {
                self.add_on_top(request, &config, attachment, &mut kernel, undo)
            }))
            .unwrap_or_else(|_| Err(Error::internal("a bug in Podwire: ADD panicked")))
        });
        if outcome.is_err() {
            // The interface goes before its address returns to the pool,
            // which the caller's undo stack does (B101).
            foundation.unmake(&mut kernel);
        }
        outcome
    }

    fn del(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        let inventory = &self.0;
        let config = inventory.parse(request, Operation::Del)?;
        let _lock = lock(attachment)?;
        let prev_result = request.config.previous_result().unwrap_or_else(|error| {
            log::warn!("going on without prevResult: {error}");
            None
        });
        let facts = Facts { operation: Operation::Del, result: prev_result.as_ref() };
        let plan = self.plan(&config, attachment, &facts)?;
        let mut kernel = I::Kernel::open(Some(&attachment.sandbox))?;
        let mut errors = Vec::new();
        let address_is_free = remove_all(&plan, &mut kernel, &mut errors);
        if inventory.addresses(&config) == Addresses::Delegated {
            if address_is_free {
                errors.extend(self.ipam(request).and_then(|ipam| ipam.del(attachment)).err());
            } else {
                log::warn!("the address stays reserved until the interface is gone");
            }
        }
        joined(errors)
    }

    fn check(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        let inventory = &self.0;
        let config = inventory.parse(request, Operation::Check)?;
        let prev_result = if inventory.needs_prev_result() {
            Some(request.require_prev_result()?)
        } else {
            request.prev_result()?
        };
        if inventory.addresses(&config) == Addresses::Delegated {
            self.ipam(request)?.check(attachment)?;
        }
        let facts = Facts { operation: Operation::Check, result: prev_result.as_ref() };
        let plan = self.plan(&config, attachment, &facts)?;
        let mut kernel = I::Kernel::open(Some(&attachment.sandbox))?;
        let mut differences = Vec::new();
        for resource in &plan {
            let found = resource
                .check(&mut kernel)
                .map_err(|error| error.context(format!("checking {}", resource.describe())))?;
            differences.extend(found);
        }
        drift(inventory.description().name, attachment, &differences)
    }

    fn status(&self, request: &Request<'_>) -> Result<(), Error> {
        let inventory = &self.0;
        let config = inventory.parse(request, Operation::Status)?;
        if inventory.addresses(&config) == Addresses::Delegated {
            self.ipam(request).and_then(|ipam| ipam.status()).map_err(not_ready)?;
        }
        let mut kernel = I::Kernel::open(None).map_err(not_ready)?;
        inventory.ready(&config, &mut kernel)
    }

    fn gc(&self, request: &Request<'_>, valid: &ValidAttachments) -> Result<(), Error> {
        let inventory = &self.0;
        let config = inventory.parse(request, Operation::Gc)?;
        let mut errors = Vec::new();
        let mut addresses_are_free = true;
        let collections = inventory.collections(&config);
        let live = Valid::from((&request.config.name, valid));
        lock::sweep(&live);
        if !collections.is_empty() {
            let mut kernel = I::Kernel::open(None)?;
            for collection in collections {
                match collection.stale(&mut kernel, &live) {
                    Ok(stale) => {
                        addresses_are_free &= remove_all(&stale, &mut kernel, &mut errors);
                    }
                    Err(error) => errors.push(
                        error.context(format!("looking for stale {}", collection.describe())),
                    ),
                }
            }
        }
        if inventory.addresses(&config) == Addresses::Delegated {
            if addresses_are_free {
                errors.extend(self.ipam(request).and_then(|ipam| ipam.gc(valid)).err());
            } else {
                log::warn!("addresses stay reserved until their interfaces are gone");
            }
        }
        joined(errors)
    }
}

impl<I: Inventory> Inventoried<I> {
    /// Everything of an attachment: the foundation and what is on top.
    fn plan(
        &self,
        config: &I::Config,
        attachment: &Attachment,
        facts: &Facts<'_>,
    ) -> Result<Plan<I::Kernel>, Error> {
        let mut plan = self.0.foundation(config, attachment, facts)?;
        plan.extend(self.0.desired(config, attachment, facts)?);
        Ok(plan)
    }

    /// The part of an ADD behind the foundation: addresses, and what needs
    /// them.
    fn add_on_top<'a>(
        &self,
        request: &'a Request<'a>,
        config: &I::Config,
        attachment: &'a Attachment,
        kernel: &mut I::Kernel,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let inventory = &self.0;
        let base = self.base(request, config, attachment, undo)?;
        let mut result = inventory.complete(config, attachment, base)?;
        let facts = Facts { operation: Operation::Add, result: Some(&result) };
        let mut top = Making::new(inventory.desired(config, attachment, &facts)?);
        top.make(kernel)?;
        if let Err(error) = inventory.observe(config, attachment, kernel, &mut result) {
            top.unmake(kernel);
            return Err(error);
        }
        Ok(result)
    }

    /// The addresses this attachment starts from; a delegated one is given
    /// back when a later step fails.
    fn base<'a>(
        &self,
        request: &'a Request<'a>,
        config: &I::Config,
        attachment: &'a Attachment,
        undo: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        match self.0.addresses(config) {
            Addresses::None => Ok(CniResult::default()),
            Addresses::PrevResult => request.require_prev_result(),
            Addresses::Delegated => {
                let ipam = self.ipam(request)?;
                let result = ipam.add(attachment)?;
                undo.push("the addresses from IPAM", move || ipam.del(attachment));
                if result.ips.is_empty() {
                    return Err(Error::internal("IPAM plugin returned missing IP config")
                        .with_details(format!(
                            "ipam.type {} gave no address",
                            request.config.ipam_type
                        )));
                }
                Ok(result)
            }
        }
    }

    fn ipam<'a>(&self, request: &'a Request<'a>) -> Result<Delegate<'a>, Error> {
        request.ipam()?.ok_or_else(|| {
            Error::config(format!(
                "{} needs an IPAM plugin: set ipam.type, for example to \"host-local\"",
                self.0.description().name
            ))
        })
    }
}

/// A plan that is being made, with what was made of it.
struct Making<K> {
    plan: Plan<K>,
    made: Vec<usize>,
}

impl<K> Making<K> {
    fn new(plan: Plan<K>) -> Self {
        Self { made: Vec::with_capacity(plan.len()), plan }
    }

    /// Makes it in order; on the first failure, or a panic, what was made is
    /// taken back.
    fn make(&mut self, kernel: &mut K) -> Result<(), Error> {
        for (index, resource) in self.plan.iter_mut().enumerate() {
            let outcome = catch_unwind(AssertUnwindSafe(|| resource.make(kernel)))
                .unwrap_or_else(|_| Err(Error::internal("a bug in Podwire: making it panicked")));
            match outcome {
                Ok(Made::Created) => self.made.push(index),
                Ok(Made::Found) => {}
                Err(error) => {
                    let error = error.context(resource.describe());
                    self.unmake(kernel);
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Takes back what was made, last first.
    fn unmake(&mut self, kernel: &mut K) {
        while let Some(index) = self.made.pop() {
            let Some(resource) = self.plan.get_mut(index) else { continue };
            if let Err(error) = resource.undo(kernel) {
                log::warn!("could not take back {}: {error}", resource.describe());
            }
        }
    }
}

/// Removes what belongs to an attachment, last first, going on after errors.
/// Says whether the container's address is out of use.
fn remove_all<K>(plan: &Plan<K>, kernel: &mut K, errors: &mut Vec<Error>) -> bool {
    let mut address_is_free = true;
    for resource in plan.iter().rev() {
        let belongs = resource.belongs();
        if matches!(belongs, Belongs::Host | Belongs::Sandbox) {
            continue;
        }
        if let Err(error) = resource.remove(kernel) {
            address_is_free &= belongs != Belongs::AttachmentAddress;
            errors.push(error.context(format!("removing {}", resource.describe())));
        }
    }
    address_is_free
}

/// The CHECK error: the first difference in the message, the further ones in the
/// details.
fn drift(plugin: &str, attachment: &Attachment, differences: &[Difference]) -> Result<(), Error> {
    let Some((first, others)) = differences.split_first() else { return Ok(()) };
    let shown = others.iter().take(DIFFERENCES_SHOWN - 1);
    let mut details: Vec<_> = shown.map(ToString::to_string).collect();
    if details.is_empty() {
        details.push(REMEDY.to_owned());
    }
    if differences.len() > DIFFERENCES_SHOWN {
        details.push(format!("and {} more", differences.len() - DIFFERENCES_SHOWN));
    }
    Err(Error::new(
        DRIFT,
        format!(
            "{plugin}: attachment {} of container {} on network {} is not as it was made: {first}",
            attachment.ifname(),
            attachment.container_id(),
            attachment.network()
        ),
    )
    .with_details(details.join("; ")))
}

/// What stands in the way of an ADD, for STATUS: an error without a code of its own, such
/// as a missing delegate's, says no more than that (specification, section 2 "STATUS").
fn not_ready(error: Error) -> Error {
    match error.code {
        ErrorCode::Internal | ErrorCode::Io => Error { code: ErrorCode::Unavailable, ..error },
        _ => error,
    }
}

/// One error for several: the first one's code, all texts.
pub(crate) fn joined(mut errors: Vec<Error>) -> Result<(), Error> {
    if errors.is_empty() {
        return Ok(());
    }
    let first = errors.remove(0);
    if errors.is_empty() {
        return Err(first);
    }
    let others: Vec<_> = errors.iter().map(ToString::to_string).collect();
    let details = [first.details.clone(), others.join("\n")]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n");
    Err(first.with_details(details))
}

/// What CHECK reports when something is not as it was made: the first code
/// that the specification leaves to plugins.
pub const DRIFT: ErrorCode = ErrorCode::Plugin(100);

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
