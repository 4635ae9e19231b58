//! Deep nesting and little room: an error, never a crash.

use crate::lab::Lab;

/// Objects in objects, as deep as this.
fn nested(depth: usize) -> String {
    format!(
        r#"{{"cniVersion":"1.1.0","name":"n","type":"x","a":{}1{}}}"#,
        "[".repeat(depth),
        "]".repeat(depth)
    )
}

/// Far deeper than any configuration is refused, as deep as allowed is read, on
/// a stack of 64 KiB too.
#[test]
fn deep_nesting_is_an_error_on_the_smallest_stack() {
    let lab = Lab::new();
    let program = |name: &str| lab.world.plugin_directory().join(name).display().to_string();
    for depth in [100, 127, 128, 1_000, 1_000_000] {
        let config = lab.world.write("config", nested(depth));
        for plugin in ["bridge", "host-local", "portmap", "static"] {
            for stack in ["64", "128", "unlimited"] {
                let line = format!(
                    "ulimit -s {stack}; CNI_COMMAND=DEL CNI_CONTAINERID=c1 CNI_IFNAME=eth0 \
                     CNI_NETNS=/nowhere CNI_PATH=/nowhere {} < {}",
                    program(plugin),
                    config.display()
                );
                let output = lab.world.try_exec(&["sh", "-c", &line]);
                assert!(
                    matches!(output.code, 0 | 1),
                    "{plugin}, {depth} deep, {stack}: {output:?}"
                );
                if depth > 128 {
                    output.error(6);
                }
            }
        }
    }
}

/// A plugin that can't have what it needs says so.
#[test]
fn too_few_descriptors_are_an_error() {
    let lab = Lab::new();
    let config = lab.world.write("config", crate::lab::host_local().to_string());
    for limit in 4..12 {
        let line = format!(
            "CNI_COMMAND=ADD CNI_CONTAINERID=c{limit} CNI_IFNAME=eth0 CNI_NETNS=/run/netns/c1 \
             CNI_PATH=/nowhere prlimit --nofile={limit}:{limit} {} < {}",
            lab.world.plugin_directory().join("host-local").display(),
            config.display()
        );
        let output = lab.world.try_exec(&["sh", "-c", &line]);
        if output.code != 0 {
            assert!(output.failure().json()["msg"].is_string());
        }
    }
}
