//! Better errors for missing files: SQLite only says that it cannot open the file.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;

use crate::{address::Address, failure::Failure};

/// The check for callers that create the file, but no folder.
///
/// # Errors
/// [`Failure::Missing`] if the folder of the file does not exist.
pub(crate) fn folder_exists(
    options: &SqliteConnectOptions,
    address: &Address,
) -> Result<(), Failure> {
    let folder = options.get_filename().parent().unwrap_or(Path::new(""));
    // A file name without a folder is in the current folder.
    if folder == Path::new("") || folder.is_dir() {
        return Ok(());
    }
    Err(Failure::Missing {
        address: address.clone(),
        what: "its folder",
        then: "create it",
    })
}

/// The check for callers that create nothing.
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
