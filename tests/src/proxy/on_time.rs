//! A sleep that ends on time. Tokio's sleep ends up to a millisecond late, and many networks are
//! faster than that.

use tokio::time::Instant;

/// Returns at once if the time has passed.
pub(super) async fn sleep_until(then: Instant) {
    if then > Instant::now() {
        exactly(then).await;
    }
}

#[cfg(target_os = "linux")]
#[expect(
    deprecated,
    reason = "what replaces it is unsafe; an `OwnedFd` keeps the descriptor open, as that asks for"
)]
async fn exactly(then: Instant) {
    use std::time::Duration;

    use rustix::time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    };
    use tokio::io::unix::AsyncFd;

    let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
    let timer = timerfd_create(TimerfdClockId::Monotonic, flags).expect("a timer of the kernel");
    // A timer that is set to zero would never end.
    let left = then.saturating_duration_since(Instant::now());
    let left = Timespec::try_from(left.max(Duration::from_nanos(1))).expect("less than an age");
    let once = Itimerspec {
        it_interval: Timespec::default(),
        it_value: left,
    };
    timerfd_settime(&timer, TimerfdTimerFlags::empty(), &once).expect("it can be set");
    let timer = AsyncFd::new(timer).expect("a runtime with I/O");
    timer.readable().await.expect("it ends").retain_ready();
}

#[cfg(not(target_os = "linux"))]
async fn exactly(then: Instant) {
    tokio::time::sleep_until(then).await;
}
