//! Which tokens are too great to have been issued.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{sync::Arc, time::Duration};

use lock_core::{FencingToken, Plausibility, backend::Runtime};
use lock_testing::ManualClock;

#[test]
fn a_token_may_be_a_day_ahead_of_the_clock_and_no_more() {
    let clock = ManualClock::new();
    let plausibility = Plausibility::by(Arc::new(clock.clone()));
    let admits = |number| plausibility.admits(FencingToken::new(number).unwrap());
    let ten_micros = u64::try_from(clock.unix_time().as_micros() / 10).unwrap();
    let tomorrow = ten_micros + 86_400 * 100_000;
    assert!(admits(1) && admits(tomorrow));
    assert!(!admits(tomorrow + 1) && !admits(FencingToken::MAX.get()));
    clock.advance(Duration::from_micros(10));
    assert!(admits(tomorrow + 1));
}
