use lock_core::{Error, backend::support::database};
use sqlx::{Row as _, postgres::PgRow};

use super::error::translate;

/// A row of an answer.
pub(super) struct Row(pub(super) PgRow);

impl database::Row for Row {
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        self.0.try_get(column).map_err(translate)
    }

    fn number_or_null(&self, column: &str) -> Result<Option<i64>, Error> {
        self.0.try_get(column).map_err(translate)
    }

    fn flag(&self, column: &str) -> Result<bool, Error> {
        let flag: Option<bool> = self.0.try_get(column).map_err(translate)?;
        Ok(flag.unwrap_or(false))
    }

    fn numbers(&self, column: &str) -> Result<Vec<u64>, Error> {
        let numbers: Option<Vec<i64>> = self.0.try_get(column).map_err(translate)?;
        let numbers = numbers.unwrap_or_default().into_iter();
        Ok(numbers.map(i64::unsigned_abs).collect())
    }
}
