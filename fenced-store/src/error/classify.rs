use std::io;

use crate::FenceError;

/// Classifies an error of the database by its meaning for a fenced transaction.
///
/// It also applies to errors of your own statements: `?` turns a lost serialization conflict into
/// [`FenceError::Serialization`], a killed session into [`FenceError::Terminated`].
impl From<sqlx::Error> for FenceError {
    fn from(source: sqlx::Error) -> Self {
        if is_no_connection(&source) {
            return Self::Busy { source };
        }
        #[cfg(feature = "postgres")]
        let source = match crate::postgres::classify(source) {
            Ok(error) => return error,
            Err(source) => source,
        };
        #[cfg(feature = "sqlite")]
        let source = match crate::sqlite::classify(source) {
            Ok(error) => return error,
            Err(source) => source,
        };
        #[cfg(feature = "mysql")]
        let source = match crate::mysql::classify(source) {
            Ok(error) => return error,
            Err(source) => source,
        };
        Self::Db { source }
    }
}

/// Whether nothing was sent because there was no connection: the pool had none in time, or the
/// server refused one. sqlx takes a refused connection for a server that is starting.
pub(crate) fn is_no_connection(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::PoolTimedOut => true,
        sqlx::Error::Io(error) => error.kind() == io::ErrorKind::ConnectionRefused,
        sqlx::Error::Database(error) => error.is_transient_in_connect_phase(),
        _ => false,
    }
}
