//! Reads the columns of an answer. The database gives numbers in several types, by the expression
//! that they come from, and all as text.

use lock_core::{Error, ErrorKind, FencingToken};
use sqlx::{Row as _, mysql::MySqlRow};

use super::error::translate;

/// A row of an answer.
pub(super) struct Row(MySqlRow);

impl From<MySqlRow> for Row {
    fn from(row: MySqlRow) -> Self {
        Self(row)
    }
}

impl Row {
    /// An empty text if it is null.
    pub(super) fn text(&self, column: &str) -> Result<String, Error> {
        Ok(self.text_or_null(column)?.unwrap_or_default())
    }

    pub(super) fn text_or_null(&self, column: &str) -> Result<Option<String>, Error> {
        self.0.try_get_unchecked(column).map_err(translate)
    }

    /// A number that is not negative; 0 if it is null.
    pub(super) fn number(&self, column: &str) -> Result<u64, Error> {
        number(&self.text_or_null(column)?.unwrap_or_else(|| "0".to_owned()))
    }

    /// Numbers with commas.
    pub(super) fn numbers(&self, column: &str) -> Result<Vec<u64>, Error> {
        let numbers = self.text(column)?;
        let each = numbers.split(',').filter(|number| !number.is_empty());
        each.map(number).collect()
    }

    pub(super) fn flag(&self, column: &str) -> Result<bool, Error> {
        Ok(self.number(column)? != 0)
    }
}

pub(super) fn token(number: u64) -> Result<FencingToken, Error> {
    FencingToken::new(number).map_err(|error| {
        Error::unknown(ErrorKind::CounterBroken)
            .because("the token of the lease is no token")
            .caused_by(error)
    })
}

fn number(text: &str) -> Result<u64, Error> {
    text.parse().map_err(|error| {
        Error::unknown(ErrorKind::Refused)
            .because("a number in the answer is none")
            .caused_by(error)
    })
}
