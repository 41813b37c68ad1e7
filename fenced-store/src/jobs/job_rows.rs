use sqlx::Database;

use super::SlotState;
use crate::FenceError;

/// What to do about times that are not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undone {
    /// The first that is known ends it, and so does the newest time that is done.
    Kept,
    /// They count as done, too.
    GivenUp,
}

/// The tables of jobs in one kind of database.
///
/// What writes is called in a transaction with the fence of the job.
pub trait JobRows<DB: Database> {
    /// Where a slot stands.
    fn look(
        connection: &mut DB::Connection,
        place: (&str, &str),
    ) -> impl Future<Output = Result<SlotState, FenceError>> + Send;

    /// The same, and marks it as done if it is due.
    fn run(
        connection: &mut DB::Connection,
        place: (&str, &str),
    ) -> impl Future<Output = Result<SlotState, FenceError>> + Send;

    /// Saves how many steps are committed, and what they have come to.
    fn save(
        connection: &mut DB::Connection,
        place: (&str, &str),
        steps: i64,
        progress: &str,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Notes a failure, and when it is due again.
    fn fail(
        connection: &mut DB::Connection,
        place: (&str, &str),
        error: &str,
        retry_in_ms: i64,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// The newest time that is done or forgotten; empty if there is none.
    fn newest(
        connection: &mut DB::Connection,
        job: &str,
    ) -> impl Future<Output = Result<String, FenceError>> + Send;

    /// Jobs and slots after this one, in their order.
    fn list(
        connection: &mut DB::Connection,
        after: (&str, &str),
        count: i64,
    ) -> impl Future<Output = Result<Vec<(String, String, SlotState)>, FenceError>> + Send;

    /// Makes a slot that has failed due at once; false if none has.
    fn retry(
        connection: &mut DB::Connection,
        place: (&str, &str),
    ) -> impl Future<Output = Result<bool, FenceError>> + Send;

    /// Forgets what is known of a slot; false if nothing is.
    fn forget(
        connection: &mut DB::Connection,
        place: (&str, &str),
    ) -> impl Future<Output = Result<bool, FenceError>> + Send;

    /// Forgets the times below this one; returns the one that it came to, empty if there is none.
    fn forget_below(
        connection: &mut DB::Connection,
        place: (&str, &str),
        undone: Undone,
    ) -> impl Future<Output = Result<String, FenceError>> + Send;
}

/// A digit stands for any digit.
const TIME: &[u8] = b"0000-00-00T00:00:00Z";

/// Whether a slot is a time of a schedule, by its form.
#[must_use]
pub fn is_time(slot: &str) -> bool {
    let fits = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == *form,
    };
    slot.len() == TIME.len() && slot.bytes().zip(TIME).all(fits)
}
