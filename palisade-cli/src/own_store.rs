//! The state of `serve` if no other place is named: a store, which has the leases, too, and the key
//! that signs their tokens. So a holder still holds after a restart.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    process,
};

use etcetera::BaseStrategy;

use crate::{address::Address, failure::Failure, signing};

/// The user's folder of data for this program: in `$XDG_DATA_HOME`, or `~/.local/share`. Makes it.
///
/// # Errors
/// [`Failure::Usage`] if there is no such folder, [`Failure::CannotWrite`] if it cannot be made.
pub(crate) fn folder() -> Result<PathBuf, Failure> {
    let folders = etcetera::choose_base_strategy().map_err(|_| {
        Failure::Usage("this user has no folder of data: name a store with --store".to_owned())
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

/// The file of the signing key. Makes it, readable by this user alone, if it is missing.
///
/// # Errors
/// [`Failure::CannotWrite`] if it cannot be made.
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

/// Written under another name and then linked, so that a process which starts at the same moment
/// reads a whole file, and both have the same key.
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
