//! The runtime of thirty lines is what it claims to be, and works.

use std::io::Write as _;

use crate::node::Node;

const SOURCE: &str = include_str!("../../examples/minimal_runtime.rs");

#[test]
fn the_minimal_runtime_attaches_and_detaches() {
    let lines = SOURCE.lines().filter(|line| !line.is_empty() && !line.starts_with("//"));
    assert!(lines.count() <= 35, "it calls itself one of thirty lines");

    let node = Node::new();
    node.network("pods", &["record"]);
    let mut child = node.minimal_runtime("pods", "c1");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "10.1.2.3/24\n");
    assert_eq!(node.log(), ["ADD record c1", "DEL record c1"]);
    assert!(node.state().is_empty(), "{:?}", node.state());
}
