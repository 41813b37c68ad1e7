//! Reads the columns of an answer.

use lock_core::{Error, ErrorKind, FencingToken};
use sqlx::{Row, postgres::PgRow};

use super::error::translate;

pub(super) fn token(number: u64) -> Result<FencingToken, Error> {
    FencingToken::new(number).map_err(|error| {
        Error::unknown(ErrorKind::CounterBroken)
            .because("the token of the lease is no token")
            .caused_by(error)
    })
}

/// A number that is not negative; 0 if it is null.
pub(super) fn number(row: &PgRow, column: &str) -> Result<u64, Error> {
    let number: Option<i64> = row.try_get(column).map_err(translate)?;
    u64::try_from(number.unwrap_or(0)).map_err(|error| {
        Error::unknown(ErrorKind::Refused)
            .because(format!("a number is negative: {column}"))
            .caused_by(error)
    })
}

pub(super) fn numbers(row: &PgRow, column: &str) -> Result<Vec<i64>, Error> {
    let numbers: Option<Vec<i64>> = row.try_get(column).map_err(translate)?;
    Ok(numbers.unwrap_or_default())
}
