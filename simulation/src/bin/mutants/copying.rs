//! A copy of the workspace. Files that are the same stay as they are, so that cargo does not build
//! them again.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use crate::Failure;

/// Makes `to` a copy of the workspace with these files changed.
pub(crate) fn copy(
    from: &Path,
    to: &Path,
    changed: &BTreeMap<PathBuf, String>,
) -> Result<(), Failure> {
    let files = files_of(from)?;
    for path in &files {
        let (source, target) = (from.join(path), to.join(path));
        if let Some(folder) = target.parent() {
            fs::create_dir_all(folder)?;
        }
        if source.is_symlink() {
            link(&fs::read_link(&source)?, &target)?;
        } else if let Some(text) = changed.get(path) {
            write(&target, text.as_bytes())?;
        } else {
            write(&target, &fs::read(&source)?)?;
        }
    }
    remove_others(to, Path::new(""), &files)
}

/// All files that git would take, without those that are deleted.
fn files_of(root: &Path) -> Result<BTreeSet<PathBuf>, Failure> {
    let mut git = Command::new("git");
    git.args([
        "ls-files",
        "-z",
        "--cached",
        "--others",
        "--exclude-standard",
    ]);
    let listed = git.current_dir(root).output()?;
    if !listed.status.success() {
        return Err(String::from_utf8_lossy(&listed.stderr).into());
    }
    let listed = String::from_utf8(listed.stdout)?;
    let paths = listed.split_terminator('\0').map(PathBuf::from);
    let is_there = |path: &PathBuf| root.join(path).symlink_metadata().is_ok();
    Ok(paths.filter(is_there).collect())
}

fn write(target: &Path, content: &[u8]) -> io::Result<()> {
    match fs::read(target) {
        Ok(present) if present == content => Ok(()),
        _ => fs::write(target, content),
    }
}

#[cfg(unix)]
fn link(to: &Path, target: &Path) -> io::Result<()> {
    match fs::read_link(target) {
        Ok(present) if present == to => Ok(()),
        _ => std::os::unix::fs::symlink(to, target),
    }
}

#[cfg(not(unix))]
fn link(to: &Path, _target: &Path) -> io::Result<()> {
    let why = format!("{} is a link", to.display());
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// Deletes other files below: the test of a file that is gone would still run.
fn remove_others(to: &Path, below: &Path, files: &BTreeSet<PathBuf>) -> Result<(), Failure> {
    for entry in fs::read_dir(to.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            remove_others(to, &path, files)?;
        } else if !files.contains(&path) {
            fs::remove_file(to.join(&path))?;
        }
    }
    Ok(())
}
