//! Which device of the host is meant, and what drives it.

use std::path::{Path, PathBuf};

use podwire_netlink::route::{Link, MacAddress};
use podwire_spec::error::Error;

use crate::kernel::{Kernel, refused};

/// Where the kernel shows PCI devices.
const PCI: &str = "/sys/bus/pci/devices";
/// Where it shows auxiliary ones: functions that a driver split off its device
/// (scalable functions).
const AUXILIARY: &str = "/sys/bus/auxiliary/devices";
/// Drivers that hand a PCI device to a program in user space (DPDK).
const USER_SPACE_DRIVERS: [&str; 3] = ["vfio-pci", "uio_pci_generic", "igb_uio"];

/// A way to name a device of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selector {
    /// By its interface's name.
    Name(String),
    /// By its MAC address.
    Mac(MacAddress),
    /// By the kernel's path, below `/sys/devices`.
    KernelPath(PathBuf),
    /// By its address on the PCI bus.
    Pci(String),
    /// By its name on the auxiliary bus.
    Auxiliary(String),
}

impl Selector {
    /// The device that a device plugin named: one of the PCI bus, or else of
    /// the auxiliary bus.
    ///
    /// # Errors
    /// Code 7: there is none of that name, or it is no name.
    pub fn of_device_id(id: &str) -> Result<Self, Error> {
        if is_bus_name(id) {
            if Path::new(PCI).join(id).exists() {
                return Ok(Self::Pci(id.to_owned()));
            }
            if Path::new(AUXILIARY).join(id).exists() {
                return Ok(Self::Auxiliary(id.to_owned()));
            }
        }
        Err(Error::config(format!("runtime config DeviceID {id:?} not found or unsupported"))
            .with_details(format!("there is neither {PCI}/{id} nor {AUXILIARY}/{id}")))
    }

    /// A path below `/sys/devices`.
    ///
    /// # Errors
    /// Code 7: it is no such path.
    pub fn of_kernel_path(text: &str) -> Result<Self, Error> {
        let path = Path::new(text);
        let climbs = path.components().any(|part| part == std::path::Component::ParentDir);
        if !text.starts_with("/sys/devices/") || climbs {
            return Err(Error::config(format!(
                "kernelpath: {text:?} must be absolute and begin with /sys/devices/"
            )));
        }
        Ok(Self::KernelPath(path.to_owned()))
    }

    /// An address on the PCI bus.
    ///
    /// # Errors
    /// Code 7: it is no name of a device.
    pub fn of_pci(text: &str) -> Result<Self, Error> {
        if !is_bus_name(text) {
            return Err(Error::config(format!("pciBusID: {text:?} is no PCI address"))
                .with_details("write it as 0000:3d:00.1"));
        }
        Ok(Self::Pci(text.to_owned()))
    }

    /// Whether the device is driven from user space, so that there is no
    /// interface to move.
    ///
    /// # Errors
    /// Code 999: there is no such PCI device, or nothing drives it.
    pub fn is_driven_from_user_space(&self) -> Result<bool, Error> {
        let Self::Pci(address) = self else { return Ok(false) };
        let path = Path::new(PCI).join(address).join("driver");
        let driver = std::fs::read_link(&path).map_err(|error| {
            Error::internal(format!("error with host device: {}: {error}", path.display()))
                .with_details("the PCI device is missing, or no driver is bound to it")
        })?;
        let name = driver.file_name().unwrap_or_default();
        Ok(USER_SPACE_DRIVERS.iter().any(|known| name == *known))
    }

    /// The device's interface on the host.
    ///
    /// # Errors
    /// The kernel refused to tell. That there is none is no error.
    pub fn find(&self, kernel: &mut Kernel) -> Result<Option<Link>, Error> {
        let name = match self {
            Self::Name(name) => Some(name.clone()),
            Self::Mac(mac) => {
                let links = kernel.host()?.links().map_err(refused)?;
                return Ok(links.into_iter().find(|link| link.mac == Some(*mac)));
            }
            Self::KernelPath(path) => interface_below(path),
            Self::Pci(address) => {
                let device = Path::new(PCI).join(address);
                interface_below(&device).or_else(|| interface_of_virtio(&device))
            }
            Self::Auxiliary(name) => interface_below(&Path::new(AUXILIARY).join(name)),
        };
        match name {
            Some(name) => kernel.host()?.link_by_name(&name).map_err(refused),
            None => Ok(None),
        }
    }
}

impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => write!(f, "device {name}"),
            Self::Mac(mac) => write!(f, "device with MAC address {mac}"),
            Self::KernelPath(path) => write!(f, "device at {}", path.display()),
            Self::Pci(address) => write!(f, "PCI device {address}"),
            Self::Auxiliary(name) => write!(f, "auxiliary device {name}"),
        }
    }
}

/// A name as the kernel gives devices of a bus; never a path.
fn is_bus_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b":._-".contains(&byte);
    !text.is_empty() && text.len() <= 64 && !text.starts_with('.') && text.bytes().all(is_plain)
}

/// The first interface that a device has.
fn interface_below(device: &Path) -> Option<String> {
    first_entry(&device.join("net"), |_| true)
}

/// The interface of the virtio device that a PCI device carries.
fn interface_of_virtio(device: &Path) -> Option<String> {
    let name = first_entry(device, |name| name.starts_with("virtio"))?;
    interface_below(&device.join(name))
}

fn first_entry(directory: &Path, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let entries = std::fs::read_dir(directory).ok()?;
    let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| is_wanted(name)).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_are_never_paths() {
        for good in ["0000:3d:00.1", "mlx5_core.sf.4"] {
            assert!(is_bus_name(good), "{good}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "a b", &"x".repeat(65)] {
            assert!(!is_bus_name(bad), "{bad}");
        }
        for bad in ["", "/sys/class/net/eth0", "sys/devices/x", "/sys/devices/../class/net/eth0"] {
            assert_eq!(Selector::of_kernel_path(bad).unwrap_err().code.number(), 7, "{bad}");
        }
        assert!(Selector::of_kernel_path("/sys/devices/pci0000:00/0000:00:1f.6").is_ok());
    }
}
