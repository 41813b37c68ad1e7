use crate::FenceError;

/// The meaning of the errors of a database.
#[expect(unnameable_types, reason = "what seals `Dialect`")]
pub trait Errors {
    /// Classifies an error of one of our own calls. If a table is missing, it is one of ours.
    fn of_our_call(source: sqlx::Error) -> FenceError;

    /// Classifies an error of one of our own commits: whether anything may have been committed.
    fn of_commit(source: sqlx::Error) -> FenceError;

    /// Whether a call was refused because its connection is already inside a transaction.
    fn is_leaked(error: &sqlx::Error) -> bool;

    /// Whether a write was refused because the database takes no writes.
    fn is_read_only(_: &sqlx::Error) -> bool {
        false
    }

    /// Whether the server has ended the session, or is about to end it.
    fn is_session_over(_: &sqlx::Error) -> bool {
        false
    }

    /// Whether the role lacks a right.
    fn is_denied(_: &sqlx::Error) -> bool {
        false
    }
}
