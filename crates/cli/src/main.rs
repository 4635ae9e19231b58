//! The `podwire` command.
fn main() {}
