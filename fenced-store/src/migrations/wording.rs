use sqlx::migrate::Migrator;

/// The migrations of a database, and its wording for those of a script.
#[derive(Clone, Debug)]
#[expect(unnameable_types, reason = "in the sealed part of `Dialect`")]
pub struct Migrations {
    pub(crate) migrator: &'static Migrator,
    /// The migrations table, and the types of its columns. It is our own: in the application's the
    /// numbers would clash.
    pub(crate) table: &'static str,
    pub(crate) time: &'static str,
    pub(crate) bytes: &'static str,
    /// The first and the last statements of the script.
    pub(crate) first: String,
    pub(crate) last: &'static str,
    /// Whether a change of the schema commits. If so, a migration is recorded before it is applied.
    pub(crate) told_before: bool,
}
