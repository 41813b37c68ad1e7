//! Moves the wall clock of one process: the one that is started with this library in `LD_PRELOAD`.
//!
//! The variable `PALISADE_CLOCK_OFFSET` names a file of 8 bytes: how far the wall clock is ahead of
//! the real one, in nanoseconds, an `i64` in the machine's byte order. The file stays mapped, so a
//! process that writes to it moves the clock of the running process. Clocks that count from the
//! start of the machine are left alone, as when an operator or a time service sets the clock of a
//! real host.
//!
//! Never name this crate in code: it would move the clock of the program that does.
#![cfg(all(target_os = "linux", target_pointer_width = "64"))]
#![expect(
    unsafe_code,
    reason = "replaces functions of the C library, which are called with raw pointers"
)]
#![warn(clippy::undocumented_unsafe_blocks)]

use std::{
    env,
    fs::File,
    mem::MaybeUninit,
    os::fd::AsRawFd,
    ptr::null_mut,
    sync::{
        LazyLock,
        atomic::{AtomicI64, Ordering},
    },
};

use libc::{
    CLOCK_REALTIME, CLOCK_REALTIME_COARSE, c_int, c_void, clockid_t, time_t, timespec, timeval,
};

/// How far this process's wall clock is ahead, in nanoseconds.
static OFFSET: LazyLock<Option<&'static AtomicI64>> = LazyLock::new(map_offset);

const NANOS_PER_SECOND: i128 = 1_000_000_000;
const NANOS_PER_MICRO: i64 = 1_000;

/// Maps the file; `None`, and a clock that is right, if there is none.
fn map_offset() -> Option<&'static AtomicI64> {
    let file = File::open(env::var_os("PALISADE_CLOCK_OFFSET")?).ok()?;
    let length = size_of::<AtomicI64>();
    // SAFETY: a fresh mapping of a file that is open; it may outlive the descriptor.
    let mapped = unsafe {
        let (readable, shared) = (libc::PROT_READ, libc::MAP_SHARED);
        libc::mmap(null_mut(), length, readable, shared, file.as_raw_fd(), 0)
    };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the mapping is never undone, begins at a page, and is read by atomic loads only. The
    // harness gives the file its 8 bytes before it starts the process.
    Some(unsafe { &*mapped.cast::<AtomicI64>() })
}

/// The wall clock as it is to be seen; `None` if the kernel has no answer.
fn shifted(clock: clockid_t) -> Result<timespec, c_int> {
    let mut time = MaybeUninit::<timespec>::uninit();
    // Not through the C library: its function of this name is the one below.
    // SAFETY: the kernel writes one timespec, and only then returns 0.
    let mut time = unsafe {
        match libc::syscall(libc::SYS_clock_gettime, clock, time.as_mut_ptr()) {
            0 => time.assume_init(),
            _ => return Err(-1), // errno is set
        }
    };
    if clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE {
        let offset = OFFSET.map_or(0, |offset| offset.load(Ordering::Relaxed));
        let nanos = i128::from(time.tv_sec) * NANOS_PER_SECOND
            + i128::from(time.tv_nsec)
            + i128::from(offset);
        let seconds = nanos.div_euclid(NANOS_PER_SECOND);
        time.tv_sec = time_t::try_from(seconds).map_err(|_| -1)?;
        time.tv_nsec = i64::try_from(nanos.rem_euclid(NANOS_PER_SECOND)).map_err(|_| -1)?;
    }
    Ok(time)
}

/// Replaces the function of the C library.
///
/// # Safety
/// `time` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clock_gettime(clock: clockid_t, time: *mut timespec) -> c_int {
    match shifted(clock) {
        Ok(now) => {
            // SAFETY: the caller's promise.
            unsafe { time.write(now) };
            0
        }
        Err(failed) => failed,
    }
}

/// Replaces the function of the C library. The time zone is not filled in, as on any Linux.
///
/// # Safety
/// `time` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gettimeofday(time: *mut timeval, _zone: *mut c_void) -> c_int {
    match shifted(CLOCK_REALTIME) {
        Ok(now) if !time.is_null() => {
            let now = timeval {
                tv_sec: now.tv_sec,
                tv_usec: now.tv_nsec / NANOS_PER_MICRO,
            };
            // SAFETY: the caller's promise.
            unsafe { time.write(now) };
            0
        }
        Ok(_) => 0,
        Err(failed) => failed,
    }
}

/// Replaces the function of the C library.
///
/// # Safety
/// `out` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn time(out: *mut time_t) -> time_t {
    match shifted(CLOCK_REALTIME) {
        Ok(now) => {
            if !out.is_null() {
                // SAFETY: the caller's promise.
                unsafe { out.write(now.tv_sec) };
            }
            now.tv_sec
        }
        Err(failed) => time_t::from(failed),
    }
}
