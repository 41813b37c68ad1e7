//! The wall clock of a server, if a test may move it: see the package `clock-shim`.

use std::{
    env,
    fs::{self, File},
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::servers::ClockOffset;

/// The file in the directory of a server that says how far its clock is ahead.
const FILE: &str = "clock-offset";

/// The library that moves the clock.
const LIBRARY: &str = "libclock_shim.so";

/// Makes a server's clock movable. Initially the clock is right. A server that is started again in
/// the same directory keeps its offset.
///
/// # Errors
/// If the library was not built, or the directory cannot be written to.
pub fn make_movable(server: &mut Command, dir: &Path) -> io::Result<()> {
    let file = dir.join(FILE);
    if !file.exists() {
        fs::write(&file, 0_i64.to_ne_bytes())?;
    }
    // The account of the server may not be able to read the folder into which Cargo puts the
    // library.
    let copy = dir.join(LIBRARY);
    fs::copy(library()?, &copy)?;
    server
        .env("LD_PRELOAD", copy)
        .env("PALISADE_CLOCK_OFFSET", file);
    Ok(())
}

/// Sets by how much the clock of the server in `dir` is off, from this moment on.
///
/// # Errors
/// If there is no server with a movable clock.
pub fn set(dir: &Path, by: ClockOffset) -> io::Result<()> {
    let ahead = match by {
        ClockOffset::Ahead(time) => i64::try_from(time.as_nanos()),
        ClockOffset::Behind(time) => i64::try_from(time.as_nanos()).map(|nanos| -nanos),
    };
    let nanos = ahead.map_err(io::Error::other)?;
    // Written in place: the server has the file mapped.
    let file = File::options().write(true).open(dir.join(FILE))?;
    file.write_all_at(&nanos.to_ne_bytes(), 0)
}

/// Cargo puts the library next to the other dependencies of this package.
fn library() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    let near = program.ancestors().skip(1);
    let mut places = near.map(|dir| dir.join("deps").join(LIBRARY)).take(2);
    places.find(|path| path.exists()).ok_or_else(|| {
        let why = "it is built with the tests, on Linux only";
        io::Error::other(format!("{LIBRARY} is missing: {why}"))
    })
}
