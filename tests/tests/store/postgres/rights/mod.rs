//! A role gets the documented rights, and no others. The attacks are named after their aim.

mod arguments;
mod definers;
mod documented;
mod guards;
mod notes;
mod overloads;
mod queue;
mod schemas;
mod secrets;

/// The code of a refusal, and the constraint that it names.
fn refusal(error: &sqlx::Error) -> (String, String) {
    let error = error.as_database_error().unwrap();
    let code = error.code().unwrap().into_owned();
    (code, error.constraint().unwrap_or_default().to_owned())
}
