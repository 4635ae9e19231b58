//! The socket: made, taken over from a daemon that was killed, or passed by
//! systemd.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use podwire_sys::file;
use podwire_sys::lock::FileLock;
use podwire_sys::service;

/// A listening socket; its name goes when it is dropped, unless it was passed.
#[derive(Debug)]
pub(super) struct Listener {
    socket: UnixListener,
    owned: Option<Owned>,
}

/// A name in the file system that is ours.
#[derive(Debug)]
struct Owned {
    path: PathBuf,
    /// Where it lies until it is shown.
    hidden: Option<PathBuf>,
    lock: Option<FileLock>,
}

impl Listener {
    /// The socket that systemd passed, or a new one, which clients find at `path`
    /// as soon as it is shown.
    ///
    /// # Errors
    /// For a person: another daemon lives there, or what the kernel said.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let passed = service::passed_socket(|name| std::env::var(name).ok());
        match passed.map_err(|error| error.to_string())? {
            Some(passed) => {
                let socket = UnixListener::from(passed);
                let failed = |error| format!("the socket that systemd passed: {error}");
                socket.set_nonblocking(true).map_err(failed)?;
                socket.local_addr().map_err(failed)?;
                Ok(Self { socket, owned: None })
            }
            None => Self::bind(path),
        }
    }

    fn bind(path: &Path) -> Result<Self, String> {
        let at = |doing: &str, error: io::Error| format!("{doing} {}: {error}", path.display());
        if let Some(folder) = path.parent() {
            file::create_dir_all(folder, 0o700).map_err(|error| error.to_string())?;
        }
        // Held as long as the daemon runs, so that two that start together
        // can't both find the socket stale.
        let lock = FileLock::exclusive(beside(path, ".lock"), Duration::ZERO)
            .map_err(|error| format!("another DHCP daemon runs: {error}"))?;
        match std::fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(at("looking at", error)),
            Ok(found) if !found.file_type().is_socket() => {
                return Err(format!("{} is no socket; it is left alone", path.display()));
            }
            Ok(_) => match UnixStream::connect(path) {
                Ok(_) => {
                    return Err(format!(
                        "another daemon listens at {}: stop it first (leases that the Go daemon \
                         holds are given again by the server)",
                        path.display()
                    ));
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    log::info!("taking over {}, whose daemon is gone", path.display());
                }
                Err(error) => return Err(at("asking who listens at", error)),
            },
        }
        // Beside its place first: nobody finds it before all else is ready.
        let temporary = beside(path, ".new");
        let _ = std::fs::remove_file(&temporary);
        let socket = UnixListener::bind(&temporary).map_err(|error| at("listening at", error))?;
        let mode = std::fs::Permissions::from_mode(0o600);
        std::fs::set_permissions(&temporary, mode)
            .and_then(|()| socket.set_nonblocking(true))
            .map_err(|error| at("listening at", error))?;
        let owned = Owned { path: path.to_owned(), hidden: Some(temporary), lock: Some(lock) };
        Ok(Self { socket, owned: Some(owned) })
    }

    /// Lets clients find the socket.
    ///
    /// # Errors
    /// For a person: what the kernel said.
    pub(super) fn show(&mut self) -> Result<(), String> {
        let Some(owned) = &mut self.owned else { return Ok(()) };
        let Some(hidden) = owned.hidden.take() else { return Ok(()) };
        std::fs::rename(&hidden, &owned.path)
            .map_err(|error| format!("listening at {}: {error}", owned.path.display()))
    }

    /// The next client that waits.
    pub(super) fn accept(&self) -> io::Result<Option<UnixStream>> {
        match self.socket.accept() {
            Ok((stream, _)) => Ok(Some(stream)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(owned) = &mut self.owned {
            // What stays is taken over by the next daemon.
            let _ = std::fs::remove_file(owned.hidden.as_ref().unwrap_or(&owned.path));
            let _ = owned.lock.take().map(FileLock::remove);
        }
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stale_socket_is_taken_over_and_a_live_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/dhcp.sock");
        let mut first = Listener::bind(&path).unwrap();
        assert!(!path.exists());
        first.show().unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&path), mode(path.parent().unwrap())), (0o600, 0o700));
        assert!(Listener::bind(&path).unwrap_err().contains("another DHCP daemon runs"));
        drop(first);
        assert!(!path.exists());

        // A daemon without our lock, as Go's, alive and then killed.
        let other = UnixListener::bind(&path).unwrap();
        assert!(Listener::bind(&path).unwrap_err().contains("another daemon listens"));
        drop(other);
        assert!(path.exists());
        let mut taken = Listener::bind(&path).unwrap();
        taken.show().unwrap();
        UnixStream::connect(&path).unwrap();
        assert!(taken.accept().unwrap().is_some());
        assert!(taken.accept().unwrap().is_none());
    }

    #[test]
    fn what_is_no_socket_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dhcp.sock");
        std::fs::write(&path, "precious").unwrap();
        assert!(Listener::bind(&path).unwrap_err().contains("no socket"));
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
    }
}
