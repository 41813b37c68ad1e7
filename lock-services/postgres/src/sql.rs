//! Statements besides the calls.

/// The statement that sends a notice to this client itself.
pub(super) fn notify(channel: &str) -> String {
    // A channel has letters, digits and `_` only.
    format!("SELECT pg_catalog.pg_notify('{channel}', '')")
}

/// The role that owns the schema, if a superuser must not call its functions.
pub(super) const OWNER: &str = "SELECT (SELECT o.rolname::pg_catalog.text \
    FROM pg_catalog.pg_namespace n, pg_catalog.pg_roles o, pg_catalog.pg_roles u \
    WHERE n.nspname OPERATOR(pg_catalog.=) 'fenced' AND o.oid OPERATOR(pg_catalog.=) n.nspowner \
    AND u.rolname OPERATOR(pg_catalog.=) current_user AND u.rolsuper AND NOT o.rolsuper) AS owner";

/// The facts that a client has to know of the database: its clock, its interface, whether it takes
/// writes.
pub(super) const WELCOME: &str = "SELECT fenced.lock_service_version()::bigint AS version, \
    CAST(extract(epoch from pg_catalog.clock_timestamp()) \
    OPERATOR(pg_catalog.*) 1000000 AS bigint) AS unix_micros, \
    pg_catalog.current_setting('transaction_isolation') AS isolation, \
    pg_catalog.current_setting('transaction_read_only') AS read_only";
