//! The pause scenario, a lock gateway and a fenced API in one binary.
fn main() {}
