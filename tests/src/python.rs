//! Programs in Python, with pinned packages from PyPI.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A virtual environment below `scratch` with the packages of a list of requirements. It is created
/// once, and again whenever the list changes.
///
/// # Panics
/// If it cannot be created, for instance because PyPI cannot be reached.
pub fn environment(scratch: &Path, list: &Path) -> PathBuf {
    let wanted = fs::read_to_string(list)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", list.display()));
    let name = list.parent().and_then(Path::file_name);
    let environment = scratch.join(name.unwrap_or_default());
    let made = environment.join("made-of.txt");
    if fs::read_to_string(&made).is_ok_and(|made| made == wanted) {
        return environment;
    }
    let make = ["-m", "venv", "--clear"].map(OsStr::new);
    run(
        Path::new("python3"),
        &[&make[..], &[environment.as_os_str()]].concat(),
    );
    let install = ["-m", "pip", "install", "--quiet", "--requirement"].map(OsStr::new);
    let python = environment.join("bin").join("python");
    run(&python, &[&install[..], &[list.as_os_str()]].concat());
    fs::write(&made, wanted).unwrap_or_else(|error| panic!("{}: {error}", made.display()));
    environment
}

fn run(program: &Path, arguments: &[&OsStr]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{output:?}");
}
