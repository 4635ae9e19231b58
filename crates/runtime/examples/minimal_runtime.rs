//! A runtime in thirty lines: attaches a namespace to a network, waits for a
//! line on standard input, and detaches it again.
//!
//! ```sh
//! ip netns add blue
//! cargo run --example minimal_runtime -- /etc/cni/net.d /opt/cni/bin pods blue1 /run/netns/blue
//! ```

use std::error::Error;

use podwire_runtime::{Attachment, Existing, Runtime, Source};
use podwire_spec::id::{ContainerId, IfName};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [configurations, plugins, network, container, netns] = arguments.as_slice() else {
        return Err("usage: minimal_runtime CONF_DIR PLUGIN_DIR NETWORK CONTAINER NETNS".into());
    };
    let mut builder =
        Runtime::builder().configuration_directory(configurations).plugin_directory(plugins);
    if let Ok(directory) = std::env::var("CACHE_DIR") {
        builder = builder.lock_directory(format!("{directory}/locks")).cache_directory(directory);
    }
    let runtime = builder.build();
    let network = runtime.network(network)?;
    let attachment =
        Attachment::new(ContainerId::parse(container)?, IfName::parse("eth0")?).with_netns(netns);

    let attached = runtime.add(&network, &attachment, Existing::ReplaceDead)?;
    for ip in &attached.result.ips {
        std::io::Write::write_all(&mut std::io::stdout(), format!("{}\n", ip.address).as_bytes())?;
    }
    std::io::stdin().read_line(&mut String::new())?;
    runtime.del(&network, &attachment, Source::Recorded)?;
    Ok(())
}
