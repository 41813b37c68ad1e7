//! SQLite says no more of a file that is not there than that it cannot open it.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;

use crate::{address::Address, failure::Failure};

/// For whoever creates the file, but no folder.
///
/// # Errors
/// [`Failure::Missing`] if the file could be nowhere.
pub(crate) fn folder_exists(
    options: &SqliteConnectOptions,
    address: &Address,
) -> Result<(), Failure> {
    let folder = options.get_filename().parent().unwrap_or(Path::new(""));
    // A file without a folder is where we are.
    if folder == Path::new("") || folder.is_dir() {
        return Ok(());
    }
    Err(Failure::Missing {
        address: address.clone(),
        what: "its folder",
        then: "make it",
    })
}

/// For whoever creates nothing.
///
/// # Errors
/// [`Failure::Missing`] if there is no file.
pub(crate) fn exists(options: &SqliteConnectOptions, address: &Address) -> Result<(), Failure> {
    if options.get_filename().exists() {
        return Ok(());
    }
    Err(Failure::Missing {
        address: address.clone(),
        what: "the file (or its folder)",
        then: "this command creates none",
    })
}
