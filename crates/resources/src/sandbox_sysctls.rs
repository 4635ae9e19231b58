//! Kernel parameters of the sandbox's network namespace.

use podwire_plugin::{Belongs, Difference, Made, Resource};
use podwire_spec::error::Error;
use podwire_sys::sysctl::{self, SysctlError};

use crate::kernel::Kernel;

/// One parameter and its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// As it was asked for, for messages.
    pub name: String,
    /// Its components below `/proc/sys`.
    pub path: Vec<String>,
    /// What it is to be.
    pub value: String,
}

/// Parameters that are set in their order. They go with the namespace: DEL
/// leaves them.
pub struct SandboxSysctls {
    parameters: Vec<Parameter>,
    previous: Vec<(Parameter, String)>,
}

impl SandboxSysctls {
    /// These parameters, in this order.
    pub const fn new(parameters: Vec<Parameter>) -> Self {
        Self { parameters, previous: Vec::new() }
    }

    fn set_all(&mut self) -> Result<(), Error> {
        for parameter in &self.parameters {
            let path: Vec<_> = parameter.path.iter().map(String::as_str).collect();
            match sysctl::read(&path) {
                Ok(there) if is_equal(&there, &parameter.value) => continue,
                Ok(there) => self.previous.push((parameter.clone(), there)),
                Err(error) if error.is_missing() => return Err(failure(parameter, &error)),
                // One that can only be written, as net/ipv4/route/flush.
                Err(_) => {}
            }
            sysctl::write(&path, &parameter.value).map_err(|error| failure(parameter, &error))?;
        }
        Ok(())
    }

    /// Sets back what was set, last first.
    fn reset(&mut self) {
        while let Some((parameter, value)) = self.previous.pop() {
            let path: Vec<_> = parameter.path.iter().map(String::as_str).collect();
            if let Err(error) = sysctl::write(&path, &value) {
                log::warn!("could not set {} back: {error}", parameter.name);
            }
        }
    }
}

impl Resource<Kernel> for SandboxSysctls {
    fn describe(&self) -> String {
        "kernel parameters in the container".to_owned()
    }

    fn belongs(&self) -> Belongs {
        Belongs::Sandbox
    }

    fn make(&mut self, kernel: &mut Kernel) -> Result<Made, Error> {
        kernel.in_sandbox(|| {
            let outcome = self.set_all();
            if outcome.is_err() {
                self.reset();
            }
            outcome
        })??;
        Ok(if self.previous.is_empty() { Made::Found } else { Made::Created })
    }

    fn check(&self, kernel: &mut Kernel) -> Result<Vec<Difference>, Error> {
        kernel.in_sandbox(|| {
            let mut found = Vec::new();
            for parameter in &self.parameters {
                let path: Vec<_> = parameter.path.iter().map(String::as_str).collect();
                let name = format!("sysctl {} in the container", parameter.name);
                match sysctl::read(&path) {
                    Ok(there) if is_equal(&there, &parameter.value) => {}
                    Ok(there) => found.push(Difference::new(name, &parameter.value, there)),
                    Err(error) if error.is_missing() => found.push(Difference::missing(name)),
                    Err(error) => log::debug!("can't be compared: {error}"),
                }
            }
            found
        })
    }

    fn remove(&self, _: &mut Kernel) -> Result<(), Error> {
        Ok(())
    }

    fn undo(&mut self, kernel: &mut Kernel) -> Result<(), Error> {
        kernel.in_sandbox(|| self.reset())
    }
}

fn failure(parameter: &Parameter, error: &SysctlError) -> Error {
    Error::internal(format!("setting sysctl {}: {error}", parameter.name)).with_details(
        if error.is_missing() {
            "the kernel lacks it, or the interface that it names is not there"
        } else {
            ""
        },
    )
}

/// Equal but for blanks and the way of writing numbers.
fn is_equal(one: &str, two: &str) -> bool {
    let (mut one, mut two) = (one.split_ascii_whitespace(), two.split_ascii_whitespace());
    loop {
        match (one.next(), two.next()) {
            (None, None) => return true,
            (Some(one), Some(two)) if one == two || is_same_number(one, two) => {}
            _ => return false,
        }
    }
}

fn is_same_number(one: &str, two: &str) -> bool {
    matches!((one.parse::<i128>(), two.parse::<i128>()), (Ok(one), Ok(two)) if one == two)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_compared_as_numbers_and_without_blanks() {
        assert!(is_equal("4096\t131072\t6291456", " 4096 131072  6291456\n"));
        assert!(is_equal("1", "01") && is_equal("-1", "-1") && is_equal("cubic", "cubic"));
        assert!(!is_equal("1 2", "1 2 3") && !is_equal("1", "10") && !is_equal("1", ""));
        assert!(!is_equal("cubic", "reno"));
    }
}
