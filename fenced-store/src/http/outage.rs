use sqlx::error::DatabaseError;

/// Whether the cause is the state of the database, and not the statement or its rights. The same
/// request may then succeed later, without a change of the service.
pub(super) fn is_outage(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_)
        | sqlx::Error::Protocol(_)
        | sqlx::Error::PoolTimedOut
        | sqlx::Error::PoolClosed
        | sqlx::Error::WorkerCrashed
        | sqlx::Error::BeginFailed => true,
        sqlx::Error::Database(error) => is_trouble(&**error),
        _ => false,
    }
}

fn is_trouble(error: &dyn DatabaseError) -> bool {
    #[cfg(feature = "mysql")]
    if let Some(error) = error.try_downcast_ref::<sqlx::mysql::MySqlDatabaseError>() {
        // Disk full; file errors; out of memory; error of the storage engine; table full; server is
        // read only.
        const TROUBLE: [u16; 9] = [1021, 1026, 1030, 1037, 1041, 1114, 1290, 1792, 1836];
        return TROUBLE.contains(&error.number()) || error.code().is_some_and(is_trouble_state);
    }
    #[cfg(feature = "sqlite")]
    if let Some(error) = error.try_downcast_ref::<sqlx::sqlite::SqliteError>() {
        // Primary codes: out of memory, input or output error, disk full, error of the file locks.
        const TROUBLE: [i32; 4] = [7, 10, 13, 15];
        let extended = error.code().and_then(|code| code.parse::<i32>().ok());
        return extended.is_some_and(|code| TROUBLE.contains(&(code & 0xff)));
    }
    error.code().is_some_and(|code| is_trouble_state(&code))
}

/// By SQLSTATE: connections, resources, the intervention of an operator, the system, and a server
/// that has become a replica.
fn is_trouble_state(state: &str) -> bool {
    let classes = ["08", "53", "57", "58"];
    state == "25006" || classes.iter().any(|class| state.starts_with(class))
}
