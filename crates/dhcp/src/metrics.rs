//! What the daemon counts, as text that Prometheus reads (its exposition
//! format, version 0.0.4).

use std::fmt::Write as _;

/// Counters since the daemon began.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Metrics {
    /// Leases that servers gave to who had none.
    pub acquired: u64,
    /// Leases that went on by the server that had given them.
    pub renewed: u64,
    /// Leases that went on by whichever server answered.
    pub rebound: u64,
    /// Refusals by servers.
    pub refused: u64,
    /// Leases that ran out.
    pub expired: u64,
    /// Leases whose address a server changed.
    pub changed: u64,
    /// Leases given back from inside the container.
    pub released_inside: u64,
    /// Leases given back from the host, the interface being gone.
    pub released_from_host: u64,
    /// Leases whose server couldn't be told.
    pub release_failed: u64,
    /// ADDs that were given up.
    pub gave_up: u64,
    /// Packets to a client's port that were no usable answers.
    pub ignored: u64,
    /// Packets that couldn't be sent.
    pub unsent: u64,
    /// Clients on the socket that were dropped.
    pub dropped_clients: u64,
}

/// How many leases there are now.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Gauge {
    /// With an address.
    pub held: usize,
    /// Without one yet, or any more.
    pub looking: usize,
}

impl Metrics {
    /// The text.
    pub fn render(&self, gauge: Gauge) -> String {
        let mut text = String::new();
        let mut family = |name: &str, kind: &str, help: &str, values: &[(&str, u64)]| {
            // Writing to a String can't fail.
            let _ = writeln!(text, "# HELP podwire_dhcp_{name} {help}");
            let _ = writeln!(text, "# TYPE podwire_dhcp_{name} {kind}");
            for (labels, value) in values {
                let _ = writeln!(text, "podwire_dhcp_{name}{labels} {value}");
            }
        };
        let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
        family(
            "leases",
            "gauge",
            "Leases that are kept.",
            &[
                ("{state=\"held\"}", count(gauge.held)),
                ("{state=\"looking\"}", count(gauge.looking)),
            ],
        );
        family(
            "agreements_total",
            "counter",
            "Agreements with servers.",
            &[
                ("{by=\"acquired\"}", self.acquired),
                ("{by=\"renewed\"}", self.renewed),
                ("{by=\"rebound\"}", self.rebound),
            ],
        );
        family(
            "losses_total",
            "counter",
            "Addresses that had to be given up.",
            &[("{reason=\"refused\"}", self.refused), ("{reason=\"expired\"}", self.expired)],
        );
        family(
            "changes_total",
            "counter",
            "Leases whose address or routes a server changed.",
            &[("", self.changed)],
        );
        family(
            "releases_total",
            "counter",
            "Leases given back.",
            &[
                ("{from=\"container\"}", self.released_inside),
                ("{from=\"host\"}", self.released_from_host),
                ("{from=\"nowhere\"}", self.release_failed),
            ],
        );
        for (name, help, value) in [
            ("given_up_total", "ADDs for which no server gave a lease in time.", self.gave_up),
            ("ignored_packets_total", "Packets that were no usable answers.", self.ignored),
            ("unsent_packets_total", "Packets that could not be sent.", self.unsent),
            ("dropped_clients_total", "Clients that were dropped.", self.dropped_clients),
        ] {
            family(name, "counter", help, &[("", value)]);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_counter_once() {
        let metrics = Metrics { renewed: 7, ..Metrics::default() };
        let text = metrics.render(Gauge { held: 2, looking: 1 });
        for line in [
            "podwire_dhcp_leases{state=\"held\"} 2",
            "podwire_dhcp_agreements_total{by=\"renewed\"} 7",
            "podwire_dhcp_changes_total 0",
            "# TYPE podwire_dhcp_given_up_total counter",
        ] {
            assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{line}\n{text}");
        }
    }
}
