//! Ratios against floors and peers, measured in one run.
fn main() {}
