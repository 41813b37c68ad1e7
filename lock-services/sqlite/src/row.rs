use lock_core::{Error, backend::support::database};
use sqlx::{Row as _, sqlite::SqliteRow};

use super::error::translate;

/// A row of a list.
pub(super) struct Row(pub(super) SqliteRow);

impl database::Row for Row {
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        self.0.try_get(column).map_err(translate)
    }

    fn number_or_null(&self, column: &str) -> Result<Option<i64>, Error> {
        self.0.try_get(column).map_err(translate)
    }
}
