//! A third-party plugin in forty lines: keeps a file that maps container
//! addresses to container ids, as a name service would read it.
//!
//! Chained behind any plugin that makes an interface:
//! `{"type": "hosts-file", "directory": "/run/hosts.d"}`.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use podwire_plugin::{Attachment, Description, Plugin, Request, Role, Undo, run};
use podwire_spec::error::Error;
use podwire_spec::result::CniResult;

struct HostsFile;

/// One file an attachment, found again by its owner mark alone.
fn file(request: &Request<'_>, attachment: &Attachment) -> Result<PathBuf, Error> {
    let directory = request.object().text_of("directory")?.unwrap_or("/run/hosts.d".into());
    Ok(PathBuf::from(&*directory).join(attachment.owner.to_string()))
}

fn lines(result: &CniResult, attachment: &Attachment) -> String {
    let found = result.container_addresses(attachment.ifname().as_str());
    let line = |ip: &&podwire_spec::result::IpConfig| {
        format!("{} {}\n", ip.address.addr(), attachment.container_id())
    };
    found.addresses.iter().map(line).collect()
}

impl Plugin for HostsFile {
    fn description(&self) -> Description {
        Description::new("hosts-file", Role::Chained)
    }

    fn add<'a>(
        &'a self,
        request: &'a Request<'a>,
        attachment: &'a Attachment,
        _: &mut Undo<'a>,
    ) -> Result<CniResult, Error> {
        let result = request.require_prev_result()?;
        let path = file(request, attachment)?;
        fs::write(&path, lines(&result, attachment))
            .map_err(|error| Error::io(format!("writing {}: {error}", path.display())))?;
        Ok(result)
    }

    fn del(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        match fs::remove_file(file(request, attachment)?) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(Error::io(format!("removing the hosts file: {error}")))
            }
            _ => Ok(()),
        }
    }

    fn check(&self, request: &Request<'_>, attachment: &Attachment) -> Result<(), Error> {
        let wanted = lines(&request.require_prev_result()?, attachment);
        match fs::read_to_string(file(request, attachment)?) {
            Ok(found) if found == wanted => Ok(()),
            _ => Err(Error::internal("the hosts file is missing or not as it was written")),
        }
    }
}

fn main() -> ExitCode {
    run(&HostsFile)
}
