//! The checks of a server before it is used.

use std::time::Duration;

use lock_core::{Error, ErrorKind, backend::support::database::Row as _};

use super::{client::Client, error::TAKES_NO_WRITES, sql};

/// The version of the interface for which this client was written.
const VERSION: u64 = 2;

impl Client {
    /// Fails if a superuser would run functions that another role has made.
    pub(super) async fn check_owner(&self) -> Result<(), Error> {
        let row = self.plain(sql::OWNER.to_owned()).await?;
        let Some(owner) = row.text_or_null("owner")? else {
            return Ok(());
        };
        let why = format!(
            "its schema `fenced` belongs to {owner:?}, whose code a superuser must not run: log in \
             as another role"
        );
        Err(Error::not_applied(ErrorKind::Refused).because(why))
    }

    /// Reads the database's clock and the version of its interface. Returns whether sessions are at
    /// READ COMMITTED. Fails if the server takes no writes.
    pub(super) async fn check_server(&self) -> Result<bool, Error> {
        let at = self.runtime().now();
        let row = self.plain(sql::WELCOME.to_owned()).await?;
        let version = row.number("version")?;
        if version != VERSION {
            let why = format!(
                "its schema `fenced` has version {version} of the lock functions, and this program \
                 needs {VERSION}: use programs and migrations of one release"
            );
            return Err(Error::not_applied(ErrorKind::Refused).because(why));
        }
        if row.text("read_only")? == "on" {
            let error = Error::not_applied(ErrorKind::Unavailable);
            return Err(error.because(TAKES_NO_WRITES));
        }
        let unix = Duration::from_micros(row.number("unix_micros")?);
        self.clock.was(unix, at);
        Ok(row.text("isolation")? == "read committed")
    }
}
