//! The state of `serve` if the user names no store and no lock service: a store, which also has the
//! leases, and the key that signs their tokens. So a holder still holds after a restart.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process,
};

use etcetera::BaseStrategy;

use crate::{address::Address, failure::Failure, signing};

/// The user's data folder for this program, in `$XDG_DATA_HOME` or `~/.local/share`. Creates the
/// folder.
///
/// # Errors
/// [`Failure::Usage`] if the user has no data folder, [`Failure::CannotWrite`] if the folder cannot
/// be created.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let folders = etcetera::choose_base_strategy().map_err(|_| {
        Failure::Usage("this user has no data folder: name a store with --store".to_owned())
    })?;
    let folder = folders.data_dir().join("palisade");
    match fs::create_dir_all(&folder) {
        Ok(()) => Ok(folder),
        Err(source) => Err(Failure::CannotWrite {
            path: folder,
            source,
        }),
    }
}

/// The address of the store in a file of this name.
pub(crate) fn address(folder: &Path, file: &str) -> Address {
    Address::sqlite_file(&folder.join(file))
}

/// The file of the signing key. Creates the file if it is missing, so that only this user can read
/// it.
///
/// # Errors
/// [`Failure::CannotWrite`] if the file cannot be created.
pub(crate) fn signing_keys(folder: &Path) -> Result<PathBuf, Failure> {
    let path = folder.join("signing-keys");
    if !path.exists() {
        make(&path).map_err(|source| Failure::CannotWrite {
            path: path.clone(),
            source,
        })?;
    }
    Ok(path)
}

/// Writes the file under another name and then links it. So a process that starts at the same
/// moment reads a complete file, and both have the same key.
fn make(path: &Path) -> io::Result<()> {
    let new = path.with_extension(format!("{}.new", process::id()));
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    writeln!(file, "{}", signing::new_line("own", false))?;
    file.sync_all()?;
    let linked = fs::hard_link(&new, path);
    fs::remove_file(&new)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}
