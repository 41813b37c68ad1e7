use std::time::Duration;

use super::answers;
use crate::{Error, ErrorKind, FencingToken};

/// A row of an answer, whose columns have names.
pub trait Row: Send + Sync {
    /// A text.
    ///
    /// # Errors
    /// If there is no such column, or no text in it.
    fn text_or_null(&self, column: &str) -> Result<Option<String>, Error>;

    /// A number.
    ///
    /// # Errors
    /// If there is no such column, or no number in it.
    fn number_or_null(&self, column: &str) -> Result<Option<i64>, Error>;

    /// A flag. In a database without flags it is a number: 0 is false, another number is true.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    fn flag(&self, column: &str) -> Result<bool, Error> {
        Ok(self.number(column)? != 0)
    }

    /// Numbers that are not negative. In a database without arrays they are a text with commas.
    ///
    /// # Errors
    /// If there is no such column, or something else is in it.
    fn numbers(&self, column: &str) -> Result<Vec<u64>, Error> {
        let numbers = self.text(column)?;
        let each = numbers.split(',').filter(|number| !number.is_empty());
        each.map(|number| number.parse().map_err(no_number))
            .collect()
    }

    /// A text, which is empty if it is null.
    ///
    /// # Errors
    /// As [`text_or_null`](Self::text_or_null).
    fn text(&self, column: &str) -> Result<String, Error> {
        Ok(self.text_or_null(column)?.unwrap_or_default())
    }

    /// A number that is not negative; 0 if it is null.
    ///
    /// # Errors
    /// As [`number_or_null`](Self::number_or_null), and if it is negative.
    fn number(&self, column: &str) -> Result<u64, Error> {
        let number = self.number_or_null(column)?.unwrap_or(0);
        u64::try_from(number).map_err(no_number)
    }

    /// A number of milliseconds.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    fn millis(&self, column: &str) -> Result<Duration, Error> {
        Ok(Duration::from_millis(self.number(column)?))
    }

    /// A fencing token.
    ///
    /// # Errors
    /// As [`number`](Self::number), and [`ErrorKind::CounterBroken`] if the number is no token.
    fn token(&self, column: &str) -> Result<FencingToken, Error> {
        answers::token(self.number(column)?)
    }
}

/// The error if a column that should have a number has none.
pub(super) fn no_number(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::unknown(ErrorKind::Refused)
        .because("a number in the answer cannot be read")
        .caused_by(error)
}
