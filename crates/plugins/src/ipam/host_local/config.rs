//! The configuration of `host-local`, judged before anything is touched.
//!
//! Range sets are used in this order: those of the runtime (capability
//! `ipRanges`), the old single range (`ipam.subnet` and its neighbours),
//! `ipam.ranges`. Each set gives one address.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use podwire_spec::Error;
use podwire_spec::address::parse_cidr;
use podwire_spec::json::{Kind, Object, Value};
use podwire_spec::request::PluginRequest;
use podwire_spec::result::Route;
use podwire_spec::version::SpecVersion;

use super::range::{self, GatewayChoice, Range, RangeSet, RangeSpec};
use crate::ipam::input;

/// Where reservations are kept unless `ipam.dataDir` says otherwise.
const DEFAULT_DATA_DIR: &str = "/var/lib/cni/networks";

/// The most range sets. Each gives the interface one more address, and no interface has so
/// many; the index of reservations is made for a few of each owner.
const SETS: usize = 1024;

/// What STATUS says about a full pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhenExhausted {
    /// Code 50, as the specification has it.
    Fail,
    /// Success and a warning: on Kubernetes code 50 makes the node unready,
    /// and its healthy pods are evicted.
    Warn,
}

/// A configuration that ADD can work with.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) data_dir: PathBuf,
    /// The range sets; the index of each names its `last_reserved_ip` file.
    pub(super) sets: Vec<RangeSet>,
    pub(super) routes: Vec<Route>,
    /// A file in the form of resolv.conf, copied into the result.
    pub(super) resolv_conf: Option<PathBuf>,
    pub(super) when_exhausted: WhenExhausted,
}

impl Config {
    /// Reads the configuration.
    ///
    /// # Errors
    /// Code 7, or 6 for values of another type, naming the key and the value.
    pub(super) fn parse(request: &PluginRequest<'_>, version: SpecVersion) -> Result<Self, Error> {
        let ipam = request.ipam.as_ref().ok_or_else(missing_ipam)?;
        let sets = range_sets(request, ipam)?;
        if sets.is_empty() {
            return Err(Error::config("no IP ranges specified").with_details(
                "set ipam.ranges: [[{\"subnet\": \"10.1.0.0/24\"}]], or have the runtime send the \
                 capability ipRanges",
            ));
        }
        if sets.len() > SETS {
            return Err(Error::config(format!(
                "{} range sets, of which each gives the interface an address: at most {SETS} are \
                 served",
                sets.len()
            ))
            .with_details("ranges that together give one address are one set: [[{...}, {...}]]"));
        }
        if let Some((before, at)) = range::overlap(&sets)
            && let (Some(other), Some(set)) = (sets.get(before), sets.get(at))
        {
            return Err(Error::config(format!(
                "range set {before} overlaps with {at}: {other} and {set}"
            )));
        }
        if version < SpecVersion::V0_3_0 {
            let networks = sets.iter().filter_map(|set| Some(set.ranges().first()?.subnet));
            input::one_per_family(networks, "range sets of one family")?;
        }
        Ok(Self {
            data_dir: data_dir(request)?,
            sets,
            routes: input::routes(ipam)?,
            resolv_conf: ipam.text_of("resolvConf")?.map(|path| path.as_ref().into()),
            when_exhausted: when_exhausted(ipam)?,
        })
    }
}

fn missing_ipam() -> Error {
    Error::config("IPAM config missing 'ipam' key")
}

/// The directory that holds one directory a network. All that DEL and GC
/// need of the configuration.
///
/// # Errors
/// Code 6 when `ipam.dataDir` is no string, code 7 when it is no path.
pub(super) fn data_dir(request: &PluginRequest<'_>) -> Result<PathBuf, Error> {
    let given = match &request.ipam {
        Some(ipam) => ipam.text_of("dataDir")?,
        None => None,
    };
    match given {
        Some(path) if path.contains('\0') => {
            Err(input::unusable("ipam.dataDir", "a path without a NUL byte", &path))
        }
        Some(path) => Ok(path.as_ref().into()),
        None => Ok(DEFAULT_DATA_DIR.into()),
    }
}

/// Whether the ranges come from the runtime with each ADD, so that STATUS,
/// which isn't sent them, can't know them.
pub(super) fn ranges_come_with_add(request: &PluginRequest<'_>) -> bool {
    let asked_for = |key: &str| -> Option<bool> {
        let capabilities = request.object().object("capabilities").ok()??;
        capabilities.lenient_boolean(key).ok()?
    };
    let configured = request.ipam.as_ref().is_some_and(|ipam| {
        ipam.get("subnet").is_some() || ipam.array("ranges").is_ok_and(|sets| !sets.is_empty())
    });
    !configured && asked_for("ipRanges") == Some(true)
}

fn when_exhausted(ipam: &Object<'_>) -> Result<WhenExhausted, Error> {
    match ipam.text_of("statusOnExhausted")?.as_deref() {
        None | Some("fail") => Ok(WhenExhausted::Fail),
        Some("warn") => Ok(WhenExhausted::Warn),
        Some(other) => {
            Err(input::unusable("ipam.statusOnExhausted", "\"fail\" or \"warn\"", other))
        }
    }
}

fn range_sets(request: &PluginRequest<'_>, ipam: &Object<'_>) -> Result<Vec<RangeSet>, Error> {
    let mut sets = match &request.runtime_config {
        Some(runtime) => sets_of_runtime(&runtime.array("ipRanges")?)?,
        None => Vec::new(),
    };
    // Without a subnet the others of the old form mean nothing; their types count.
    for key in ["rangeStart", "rangeEnd", "gateway"] {
        ipam.text_of(key)?;
    }
    if ipam.text_of("subnet")?.is_some() {
        sets.push(RangeSet::new("ipam", vec![range(ipam)?])?);
    }
    for set in &ipam.array("ranges")? {
        if set.kind() == Kind::Object {
            return Err(Error::config(format!(
                "{}: expected an array of ranges, found a range: each set of ranges is an array of \
                 its own",
                set.path()
            ))
            .with_details("write [[{\"subnet\": ...}]] in place of [{\"subnet\": ...}]"));
        }
        sets.push(range_set(set)?);
    }
    Ok(sets)
}

/// The runtime's ranges: sets, as the convention has it, or a flat list, as
/// containerd's client library writes it, of which those of one family are a
/// set.
fn sets_of_runtime(entries: &[Value<'_>]) -> Result<Vec<RangeSet>, Error> {
    let mut sets = Vec::new();
    let mut flat = Vec::new();
    for entry in entries.iter().filter(|entry| !entry.is_null()) {
        if entry.kind() == Kind::Object {
            flat.push(range(&entry.object()?)?);
        } else {
            sets.push(range_set(entry)?);
        }
    }
    let (ipv4, ipv6): (Vec<_>, Vec<_>) =
        flat.into_iter().partition(|range| range.subnet.addr().is_ipv4());
    for family in [ipv4, ipv6] {
        if !family.is_empty() {
            sets.push(RangeSet::new("runtimeConfig.ipRanges", family)?);
        }
    }
    Ok(sets)
}

fn range_set(entry: &Value<'_>) -> Result<RangeSet, Error> {
    let ranges =
        entry.array()?.iter().map(|entry| range(&entry.object()?)).collect::<Result<_, Error>>()?;
    RangeSet::new(entry.path(), ranges)
}

fn range(object: &Object<'_>) -> Result<Range, Error> {
    let key = object.path_of("subnet");
    let subnet = object.text_of("subnet")?.ok_or_else(|| {
        Error::config(format!("{key}: missing, expected a subnet, as 10.1.0.0/24"))
    })?;
    let subnet = parse_cidr(&subnet)
        .ok_or_else(|| input::unusable(&key, "a subnet, as 10.1.0.0/24", &subnet))?;
    let gateway = match object.text_of("gateway")? {
        None => GatewayChoice::Default,
        Some(text) if text.eq_ignore_ascii_case("none") => GatewayChoice::None,
        Some(_) => input::optional_address(object, "gateway")?
            .map_or(GatewayChoice::Default, GatewayChoice::Address),
    };
    Range::new(RangeSpec {
        path: object.path().to_owned(),
        subnet,
        start: input::optional_address(object, "rangeStart")?,
        end: input::optional_address(object, "rangeEnd")?,
        gateway,
        exclude: excluded(object, subnet)?,
    })
}

/// `exclude`: addresses and subnets of the range that are used otherwise.
fn excluded(object: &Object<'_>, subnet: IpNet) -> Result<Vec<IpNet>, Error> {
    let mut excluded = Vec::new();
    for entry in &object.array("exclude")? {
        let text = entry.string()?;
        let single = || podwire_spec::address::parse_ip(&text).map(IpNet::from);
        let net = parse_cidr(&text)
            .or_else(single)
            .filter(|net| input::same_family(net.addr(), subnet.addr()))
            .ok_or_else(|| {
                let family = input::family(subnet.addr());
                let wanted = format!("an {family} address or subnet to leave out");
                input::unusable(entry.path(), &wanted, &text)
            })?;
        excluded.push(net);
    }
    Ok(excluded)
}

/// An address that the caller asks for, and how it asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Requested {
    pub(super) address: IpAddr,
    /// The variable or key that named it, for errors.
    pub(super) source: String,
}

/// The addresses asked for, each once: those of `CNI_ARGS`, then
/// `args.cni.ips`, then the capability `ips`. A prefix is accepted and not
/// looked at, as in the reference plugins.
///
/// # Errors
/// Code 7 naming the key and the value that is no address.
pub(super) fn requested(
    request: &PluginRequest<'_>,
    argument: Option<&str>,
) -> Result<Vec<Requested>, Error> {
    let mut all: Vec<Requested> = Vec::new();
    let mut add = |source: String, text: &str| -> Result<(), Error> {
        let address = input::address_or_cidr(&source, text)?;
        if all.iter().all(|requested| requested.address != address) {
            all.push(Requested { address, source });
        }
        Ok(())
    };
    for text in argument.unwrap_or_default().split(',').filter(|text| !text.is_empty()) {
        add("CNI_ARGS IP".to_owned(), text)?;
    }
    let of_args = match &request.args {
        Some(args) => args.object("cni")?,
        None => None,
    };
    for object in of_args.iter().chain(&request.runtime_config) {
        for entry in object.array("ips")?.iter().filter(|entry| !entry.is_null()) {
            add(entry.path().to_owned(), &entry.string()?)?;
        }
    }
    Ok(all)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
