use lock_core::{Error, ErrorKind, backend::support::database};
use sqlx::{Row as _, mysql::MySqlRow};

use super::error::translate;

/// A row of an answer. The database sends numbers as text, and their type depends on the expression
/// from which they come.
pub(super) struct Row(pub(super) MySqlRow);

impl database::Row for Row {
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        self.0.try_get_unchecked(column).map_err(translate)
    }

    fn number_or_null(&self, column: &str) -> Result<Option<i64>, Error> {
        let number = self.text_or_null(column)?;
        let number = number.map(|number| number.parse()).transpose();
        number.map_err(|error| {
            Error::unknown(ErrorKind::Refused)
                .because("a number in the answer cannot be read")
                .caused_by(error)
        })
    }
}
