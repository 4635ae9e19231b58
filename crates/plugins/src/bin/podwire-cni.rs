//! The multi-call plugin program.
fn main() {}
