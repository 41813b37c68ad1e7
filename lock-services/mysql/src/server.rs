//! The checks of a server before it is used.

use std::time::Duration;

use lock_core::{
    Error, ErrorKind,
    backend::support::database::{Call, Database as _, Procedures as _, Row as _, only},
};
use tracing::warn;

use super::{client::Client, error::TAKES_NO_WRITES};

/// The version of the interface for which this client was written.
const VERSION: u64 = 1;

/// Settings of the server that leases depend on. A server may not have all of them.
const SETTINGS: &str = "SHOW GLOBAL VARIABLES WHERE Variable_name IN \
    ('binlog_format', 'innodb_flush_log_at_trx_commit', 'log_bin', 'read_only', 'wsrep_on')";

/// A query for the microseconds by which the clock is ahead of the begin of the statement, after a
/// pause. It is needed because no variable shows `--sysdate-is-now`.
const SYSDATE: &str = "SELECT SLEEP(0.01) AS slept, \
    TIMESTAMPDIFF(MICROSECOND, NOW(6), SYSDATE(6)) AS ahead_us";

impl Client {
    /// Fails if the server cannot keep the promises, or takes no writes.
    pub(super) async fn check_server(&self) -> Result<(), Error> {
        let refused = |why: &'static str| Err(Error::not_applied(ErrorKind::Refused).because(why));
        let mut has_binary_log = false;
        let mut logs_statements = false;
        for row in self.send(SETTINGS.to_owned()).await? {
            let (name, value) = (row.text("Variable_name")?, row.text("Value")?);
            let is_on = !["OFF", "0"].contains(&&*value);
            match &*name {
                "binlog_format" => logs_statements = value == "STATEMENT",
                "log_bin" => has_binary_log = is_on,
                "wsrep_on" if is_on => {
                    return refused(
                        "the server is a node of a Galera cluster, where a lock of a row holds on \
                         one node only",
                    );
                }
                "read_only" if is_on => {
                    let error = Error::not_applied(ErrorKind::Unavailable);
                    return Err(error.because(TAKES_NO_WRITES));
                }
                "innodb_flush_log_at_trx_commit" if value != "1" => warn!(
                    "innodb_flush_log_at_trx_commit is {value}: a crash may take grants back that \
                     were reported; set it to 1"
                ),
                _ => {}
            }
        }
        if has_binary_log && logs_statements {
            return refused("the binary log has statements: set binlog_format to ROW or MIXED");
        }
        let sysdate = only(self.send(SYSDATE.to_owned()).await?)?;
        if sysdate.number("ahead_us")? < 5000 {
            return refused(
                "the server was started with --sysdate-is-now, so that each user can set the clock",
            );
        }
        Ok(())
    }

    /// Reads the database's clock and the version of its interface.
    pub(super) async fn read_version_and_clock(&self) -> Result<(), Error> {
        let at = self.tasks().runtime().now();
        let row = only(self.rows(Call::new("lock_service")).await?)?;
        let version = row.number("version")?;
        if version != VERSION {
            let why = format!(
                "the database has version {version} of the procedures of leases, and this program \
                 needs {VERSION}: use programs and migrations of one release"
            );
            return Err(Error::not_applied(ErrorKind::Refused).because(why));
        }
        let unix = Duration::from_micros(row.number("unix_us")?);
        self.clock.was(unix, at);
        Ok(())
    }
}
