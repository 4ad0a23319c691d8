//! The `the-loop` binary.
fn main() {}
