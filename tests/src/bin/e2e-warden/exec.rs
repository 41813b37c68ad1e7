use std::{ffi::OsString, io, os::unix::process::CommandExt, process::Command};

/// Becomes another program, which the kernel kills when `PARENT`, the test, dies.
///
/// The child itself has to ask for the death signal, between fork and exec. In the parent this
/// would take unsafe code. Here it is a plain call in a process of its own.
pub(crate) fn exec(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    let (Some(parent), Some(program)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other(
            "say whose child to run, and which program",
        ));
    };
    die_with(&parent)?;
    Err(Command::new(program).args(arguments).exec())
}

#[cfg(target_os = "linux")]
fn die_with(parent: &OsString) -> io::Result<()> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};

    set_parent_process_death_signal(Some(Signal::KILL))?;
    // The test may have died before we asked.
    let still = getppid().is_some_and(|pid| *parent == *pid.as_raw_pid().to_string());
    if still {
        return Ok(());
    }
    Err(io::Error::other("the parent is gone"))
}

/// Only Linux has the death signal. Elsewhere the program has to watch its standard input.
#[cfg(not(target_os = "linux"))]
fn die_with(_parent: &OsString) -> io::Result<()> {
    Ok(())
}
