//! The manifest for Kubernetes: parsed, and held to what it promises.

use yaml_rust2::{Yaml, YamlLoader};

use crate::workspace;

fn manifest() -> Yaml {
    let path = workspace::root().join("deploy/daemonset.yaml");
    let documents = YamlLoader::load_from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(documents.len(), 1);
    documents.into_iter().next().unwrap()
}

fn words(list: &Yaml) -> Vec<&str> {
    list.as_vec().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

#[test]
fn the_daemon_set_installs_before_it_waits() {
    let set = manifest();
    assert_eq!(set["apiVersion"].as_str(), Some("apps/v1"));
    assert_eq!(set["kind"].as_str(), Some("DaemonSet"));
    let labels = &set["spec"]["template"]["metadata"]["labels"];
    assert_eq!(&set["spec"]["selector"]["matchLabels"], labels);
    let pod = &set["spec"]["template"]["spec"];
    assert_eq!(pod["hostNetwork"].as_bool(), Some(true), "there is no network before it");
    let tolerated = pod["tolerations"].as_vec().unwrap();
    assert!(tolerated.iter().any(|one| one["operator"].as_str() == Some("Exists")));
    let install = &pod["initContainers"][0];
    assert_eq!(words(&install["command"])[..2], ["/podwire", "migrate"]);
    let stay = &pod["containers"][0];
    assert!(words(&stay["command"]).contains(&"--stay"));
    for container in [install, stay] {
        // A tag that moves would make nodes differ.
        let image = container["image"].as_str().unwrap();
        assert!(image.ends_with(concat!(":", env!("CARGO_PKG_VERSION"))), "{image}");
    }
}

#[test]
fn the_daemon_set_has_what_it_needs_and_no_more() {
    let pod = &manifest()["spec"]["template"]["spec"];
    let volumes = pod["volumes"].as_vec().unwrap();
    let paths: Vec<_> =
        volumes.iter().map(|volume| volume["hostPath"]["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/opt/cni/bin"]);
    assert_ne!(pod["hostPID"].as_bool(), Some(true));
    let containers = [&pod["initContainers"][0], &pod["containers"][0]];
    for container in containers {
        let context = &container["securityContext"];
        assert_eq!(context["privileged"].as_bool(), Some(false));
        assert_eq!(context["allowPrivilegeEscalation"].as_bool(), Some(false));
        assert_eq!(context["readOnlyRootFilesystem"].as_bool(), Some(true));
        assert_eq!(words(&context["capabilities"]["drop"]), ["ALL"]);
        for mount in container["volumeMounts"].as_vec().unwrap_or(&Vec::new()) {
            // The same path inside as outside, so that links and messages agree.
            assert_eq!(mount["mountPath"].as_str(), Some("/opt/cni/bin"));
            let name = mount["name"].as_str();
            assert!(volumes.iter().any(|volume| volume["name"].as_str() == name));
        }
        assert!(container["resources"]["requests"]["memory"].as_str().is_some());
    }
    // Only who writes the host's files is its root.
    let user = |container: &Yaml| container["securityContext"]["runAsUser"].as_i64();
    assert_eq!(containers.map(user), [Some(0), Some(65534)]);
}

#[test]
fn the_image_holds_the_programs_and_nothing_else() {
    let path = workspace::root().join("deploy/Containerfile");
    let text = std::fs::read_to_string(path).unwrap();
    let lines: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.contains(&"FROM scratch"), "{text}");
    assert!(lines.contains(&"COPY podwire podwire-cni /"), "{text}");
}
