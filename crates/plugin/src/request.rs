//! One validated request: the configuration from standard input and the
//! variables that go with it.

use podwire_spec::args::CniArgs;
use podwire_spec::error::Error;
use podwire_spec::id::PluginType;
use podwire_spec::json::Object;
use podwire_spec::request::PluginRequest;
use podwire_spec::result::CniResult;
use podwire_spec::version::SpecVersion;

use crate::delegate::Delegate;
use crate::environment::Environment;
use crate::plugin::Registry;

/// What a plugin is asked, with the gates passed: name and version checked,
/// variables validated.
pub struct Request<'a> {
    /// The configuration, as the runtime sent it.
    pub config: &'a PluginRequest<'a>,
    /// The configuration's version; results are written in it.
    pub version: SpecVersion,
    pub(crate) environment: &'a Environment,
    pub(crate) registry: &'static Registry,
    /// True when this request already is a delegated one.
    pub(crate) delegated: bool,
}

impl<'a> Request<'a> {
    /// `CNI_ARGS`, as text: `K=V;K2=V2`.
    pub fn arguments_text(&self) -> &str {
        &self.environment.args
    }

    /// `CNI_ARGS` with only the given keys known (their case is exact);
    /// others are an error unless `IgnoreUnknown` is set.
    ///
    /// # Errors
    /// As the reference plugins: `ARGS: invalid pair`, `ARGS: unknown args`.
    pub fn arguments(&self, known: &[&str]) -> Result<CniArgs, Error> {
        let arguments = CniArgs::parse(&self.environment.args)?;
        arguments.refuse_unknown(known)?;
        Ok(arguments)
    }

    /// The configuration's own keys.
    pub fn object(&self) -> &Object<'a> {
        self.config.object()
    }

    /// `args.cni`, where runtimes put values for plugins (CNI conventions).
    ///
    /// # Errors
    /// Code 6 when it is no object.
    pub fn args_cni(&self) -> Result<Option<Object<'a>>, Error> {
        match &self.config.args {
            Some(args) => args.object("cni"),
            None => Ok(None),
        }
    }

    /// The result of the plugins before this one, in the newest shape.
    ///
    /// # Errors
    /// When it can't be read, or refers to interfaces it doesn't list (B022).
    pub fn prev_result(&self) -> Result<Option<CniResult>, Error> {
        let result = self.config.previous_result()?;
        if let Some(result) = &result {
            result.validate_indices().map_err(|error| error.context("prevResult"))?;
        }
        Ok(result)
    }

    /// The same, for verbs that can't do without.
    ///
    /// # Errors
    /// Code 7 when there is none.
    pub fn require_prev_result(&self) -> Result<CniResult, Error> {
        self.prev_result()?.ok_or_else(|| {
            Error::config("Required prevResult missing").with_details(
                "this verb needs the result of the plugins before this one: for ADD the plugin \
                 must stand behind another in the list, for CHECK the runtime must send the \
                 stored result",
            )
        })
    }

    /// The IPAM plugin this configuration delegates to, if `ipam.type` is
    /// set.
    ///
    /// # Errors
    /// Code 7 when the type is no valid plugin name.
    pub fn ipam(&self) -> Result<Option<Delegate<'_>>, Error> {
        if self.config.ipam_type.is_empty() {
            return Ok(None);
        }
        let plugin_type = PluginType::parse(&self.config.ipam_type)
            .map_err(|error| error.context("ipam.type"))?;
        Ok(Some(Delegate::new(plugin_type, self)))
    }
}
