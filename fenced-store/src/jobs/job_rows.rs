use super::SlotState;
use crate::{FenceError, Storage};

/// The treatment of times that are not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Undone {
    /// They are kept: forgetting stops at the first of them, and at the newest time that is done.
    Kept,
    /// They are forgotten, too, and count as done.
    GivenUp,
}

/// The tables of jobs in one kind of database.
///
/// A call that writes is made inside a transaction that the resource of the job fences.
pub trait JobRows<DB: Storage> {
    /// The state of a slot.
    fn look(
        connection: &mut DB::Session,
        place: (&str, &str),
    ) -> impl Future<Output = Result<SlotState, FenceError>> + Send;

    /// The state of a slot. Marks it as done if it is due.
    fn run(
        connection: &mut DB::Session,
        place: (&str, &str),
    ) -> impl Future<Output = Result<SlotState, FenceError>> + Send;

    /// Saves the number of committed steps, and their progress.
    fn save(
        connection: &mut DB::Session,
        place: (&str, &str),
        steps: i64,
        progress: &str,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// Notes a failure, and the time at which the slot is due again.
    fn fail(
        connection: &mut DB::Session,
        place: (&str, &str),
        error: &str,
        retry_in_ms: i64,
    ) -> impl Future<Output = Result<(), FenceError>> + Send;

    /// The newest time that is done or forgotten; empty if there is none.
    fn newest(
        connection: &mut DB::Session,
        job: &str,
    ) -> impl Future<Output = Result<String, FenceError>> + Send;

    /// Jobs and slots after this one, in their order.
    fn list(
        connection: &mut DB::Session,
        after: (&str, &str),
        count: i64,
    ) -> impl Future<Output = Result<Vec<(String, String, SlotState)>, FenceError>> + Send;

    /// Makes a failed slot due at once. Returns whether there was one.
    fn retry(
        connection: &mut DB::Session,
        place: (&str, &str),
    ) -> impl Future<Output = Result<bool, FenceError>> + Send;

    /// Forgets a slot. Returns whether it was known.
    fn forget(
        connection: &mut DB::Session,
        place: (&str, &str),
    ) -> impl Future<Output = Result<bool, FenceError>> + Send;

    /// Forgets the times below this one. Returns the time at which it stopped; empty if there is
    /// none.
    fn forget_below(
        connection: &mut DB::Session,
        place: (&str, &str),
        undone: Undone,
    ) -> impl Future<Output = Result<String, FenceError>> + Send;
}

/// The form of a time, in which a zero stands for any digit.
const TIME: &[u8] = b"0000-00-00T00:00:00Z";

/// Whether a slot has the form of a time of a schedule.
#[must_use]
pub fn is_time(slot: &str) -> bool {
    let fits = |(byte, form): (u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == *form,
    };
    slot.len() == TIME.len() && slot.bytes().zip(TIME).all(fits)
}
