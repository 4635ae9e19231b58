//! A plugin that plans and touches nothing.

use podwire_plugin::{
    Attachment, Description, Environment, Facts, Inventory, Plugin, Registry, Request, Role, Undo,
    dispatch,
};
use podwire_spec::error::Error;
use podwire_spec::operation::Operation;
use podwire_spec::request::ValidAttachments;
use podwire_spec::result::CniResult;

/// An inventory of which only the pure parts are called: for each verb its
/// configuration is read, its result completed and its plan made.
pub(crate) struct Rehearsal<I>(pub(crate) I);

impl<I: Inventory> Rehearsal<I> {
    fn plan(
        &self,
        request: &Request<'_>,
        attachment: &Attachment,
        operation: Operation,
    ) -> Result<CniResult, Error> {
        let inventory = &self.0;
        let config = inventory.parse(request, operation)?;
        let given = request.prev_result().ok().flatten();
        let result = match (operation, given) {
            (Operation::Add, given) => {
                Some(inventory.complete(&config, attachment, given.unwrap_or_default())?)
            }
            (_, given) => given,
        };
        let early = result.as_ref().filter(|_| operation != Operation::Add);
        let facts = Facts { operation, result: early };
        let mut plan = inventory.foundation(&config, attachment, &facts)?;
        let facts = Facts { operation, result: result.as_ref() };
        plan.extend(inventory.desired(&config, attachment, &facts)?);
        for resource in &plan {
            assert!(!resource.describe().is_empty());
            let _ = resource.belongs();
        }
        for collection in inventory.collections(&config) {
            assert!(!collection.describe().is_empty());
        }
        let _ = (inventory.addresses(&config), inventory.needs_prev_result());
        Ok(result.unwrap_or_default())
    }
}

impl<I: Inventory> Plugin for Rehearsal<I> {
    /// As an IPAM plugin: none is asked for a namespace that is there.
    fn description(&self) -> Description {
        Description { role: Role::Ipam, ..self.0.description() }
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        _: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        self.plan(request, attachment, Operation::Add)
    }

    fn del(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        self.plan(request, attachment, Operation::Del).map(drop)
    }

    fn check(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        self.plan(request, attachment, Operation::Check).map(drop)
    }

    fn status(&self, request: &Request<'_>) -> Result<(), Error> {
        self.0.parse(request, Operation::Status).map(drop)
    }

    fn gc(&self, request: &Request<'_>, _: &ValidAttachments) -> Result<(), Error> {
        let config = self.0.parse(request, Operation::Gc)?;
        drop(self.0.collections(&config));
        Ok(())
    }
}

/// Calls a plugin as a runtime does, and looks at its answer.
pub(crate) fn call(
    plugin: &'static dyn Plugin,
    registry: &'static Registry,
    environment: Environment,
    stdin: &[u8],
) {
    let output = dispatch(plugin, registry, Ok(environment), &mut &*stdin);
    // Not what the input says itself: its quotation marks would be escaped.
    let is_a_bug = output.stdout.contains("\"msg\": \"a bug in Podwire");
    assert!(!is_a_bug, "{}", output.stdout);
    match output.code {
        0 => {}
        1 => assert!(Error::parse(&output.stdout).is_some(), "no error: {:?}", output.stdout),
        other => panic!("exit code {other}"),
    }
}

/// The variables of an attachment that was never made.
pub(crate) fn variables(command: &str) -> Environment {
    Environment {
        command: command.to_owned(),
        container_id: "c1".to_owned(),
        netns: "/nowhere/at/all".to_owned(),
        ifname: "eth0".to_owned(),
        ..Environment::default()
    }
}

/// The verbs of the specification.
pub(crate) const VERBS: [&str; 6] = ["ADD", "CHECK", "DEL", "GC", "STATUS", "VERSION"];
