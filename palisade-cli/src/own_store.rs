//! The store of `serve` if none is named.

use std::fs;

use etcetera::BaseStrategy;

use crate::{address::Address, failure::Failure};

/// The address of a file of this name in the user's folder of data: `$XDG_DATA_HOME`, or
/// `~/.local/share`. Makes the folder.
///
/// # Errors
/// [`Failure::Usage`] if there is no such folder, [`Failure::CannotWrite`] if it cannot be made.
pub(crate) fn address(file: &str) -> Result<Address, Failure> {
    let folders = etcetera::choose_base_strategy().map_err(|_| {
        Failure::Usage("this user has no folder of data: name a store with --store".to_owned())
    })?;
    let folder = folders.data_dir().join("palisade");
    match fs::create_dir_all(&folder) {
        Ok(()) => Ok(Address::sqlite_file(&folder.join(file))),
        Err(source) => Err(Failure::CannotWrite {
            path: folder,
            source,
        }),
    }
}
