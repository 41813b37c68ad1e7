use crate::FenceError;

/// Classifies an error of the database by its meaning for a fenced transaction.
///
/// Also used for errors of your own statements: `?` turns a lost serialization conflict into
/// [`FenceError::Serialization`], a killed session into [`FenceError::Terminated`].
impl From<sqlx::Error> for FenceError {
    fn from(source: sqlx::Error) -> Self {
        if matches!(source, sqlx::Error::PoolTimedOut) {
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
