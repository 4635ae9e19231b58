//! Collecting what the configuration of today doesn't ask for.

use podwire_plugin::{Collection, Plan, Valid};
use podwire_spec::error::Error;

use crate::kernel::Kernel;

/// A collection of objects that the configuration asks for, or did when an attachment was
/// made that is gone by now. Where it doesn't any more, a kernel that can't tell is no
/// failure: it may never have had what it takes to make them.
pub fn formerly(
    wanted: bool,
    collection: impl Collection<Kernel> + 'static,
) -> Box<dyn Collection<Kernel>> {
    if wanted { Box::new(collection) } else { Box::new(Formerly(collection)) }
}

struct Formerly<C>(C);

impl<C: Collection<Kernel>> Collection<Kernel> for Formerly<C> {
    fn describe(&self) -> String {
        self.0.describe()
    }

    fn stale(&self, kernel: &mut Kernel, valid: &Valid) -> Result<Plan<Kernel>, Error> {
        self.0.stale(kernel, valid).or_else(|error| {
            log::info!("{} are not looked for: {error}", self.describe());
            Ok(Vec::new())
        })
    }
}
