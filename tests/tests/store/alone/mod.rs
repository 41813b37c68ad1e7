//! Tests that need the machine for themselves: databases that are killed again and again under
//! load.
//! `scripts/test` runs these when nothing else runs.

mod power_cut;
mod random;
