//! Every version of the specification, and every operation.

use serde_json::{Value, json};

use crate::lab::{HOST_END, Lab, both_ways};

fn request(lab: &Lab, version: &str) -> Value {
    let mut keys = both_ways();
    keys["cniVersion"] = json!(version);
    keys["prevResult"] = lab.prev_result();
    keys["prevResult"]["cniVersion"] = json!(version);
    if version.starts_with("0.") {
        keys["prevResult"]["ips"][0]["version"] = json!("4");
    }
    keys["cni.dev/valid-attachments"] = json!([{"containerID": "c1", "ifname": "eth0"}]);
    keys
}

#[test]
fn every_operation_in_every_version() {
    let lab = Lab::new();
    for version in ["0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"] {
        let mut keys = request(&lab, version);
        let served = lab.call("VERSION", &keys).run().success().json();
        assert!(served["supportedVersions"].as_array().unwrap().contains(&json!(version)));
        let result = lab.add(&keys).json();
        assert_eq!(result["cniVersion"], version);
        assert_eq!(result["interfaces"][2]["name"], lab.ifb());
        keys["prevResult"] = result;
        for (verb, since) in [("CHECK", "0.4.0"), ("STATUS", "1.1.0"), ("GC", "1.1.0")] {
            let output = lab.call(verb, &keys).run();
            if version < since {
                output.error(1);
            } else {
                output.success();
            }
        }
        lab.del(&keys);
        assert!(lab.ifbs().is_empty());
        assert_eq!(lab.root(HOST_END)["kind"], "noqueue");
    }
    for version in ["0.1.0", "0.2.0", "2.0.0"] {
        lab.call("ADD", &request(&lab, version)).run().error(1);
    }
}
