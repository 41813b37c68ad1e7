/// The work of a role of the database, see [`FencedStore::check`](crate::FencedStore::check).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rights {
    /// Transactions under grants that others have claimed.
    Write,
    /// Claims, and transactions.
    ClaimAndWrite,
}

/// The reason why this build cannot use a database, or not with this role. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// A migration was not applied, and neither were the later ones.
    #[error(
        "migration {version} ({name}) is missing in this database: \
         migrate it, as the owner of its tables, before you start this version"
    )]
    #[non_exhaustive]
    Missing {
        /// Its number.
        version: i64,
        /// Its name.
        name: String,
    },
    /// The database has a migration that this build does not know.
    #[error(
        "this database has migration {version} ({name}), and this version knows no migration \
         after {known}: start a version that is as new as the database"
    )]
    #[non_exhaustive]
    Newer {
        /// Its number.
        version: i64,
        /// Its name.
        name: String,
        /// The number of the last migration that this build knows.
        known: i64,
    },
    /// A migration has begun and has not ended. Only MySQL and MariaDB get into that state by
    /// themselves, because they cannot roll back a change of the schema.
    #[error(
        "migration {version} ({name}) was applied half way: find out why, \
         delete its row from {table}, and migrate again, which completes the migration"
    )]
    #[non_exhaustive]
    HalfApplied {
        /// Its number.
        version: i64,
        /// Its name.
        name: String,
        /// The migrations table.
        table: &'static str,
    },
    /// A build before the first release has made the tables. They have other names, and no
    /// migration brings them up to date.
    #[error(
        "the tables of fenced-store in this database are of a build before 0.1, whose migration 1 \
         was called {name}: stop all programs that use them, drop {tables}, and migrate again"
    )]
    #[non_exhaustive]
    BeforeFirstRelease {
        /// The name of their first migration.
        name: String,
        /// The things to drop.
        tables: &'static str,
    },
    /// Another migration with this number was applied.
    #[error(
        "migration {version} ({name}) was applied with another text than this version has: \
         start the version that has migrated this database; if that was a build before 0.1, stop \
         all programs that use it, drop {tables}, and migrate again"
    )]
    #[non_exhaustive]
    Changed {
        /// Its number.
        version: i64,
        /// Its name.
        name: String,
        /// The things to drop.
        tables: &'static str,
    },
    /// A schema of ours belongs to another role, or another role may create functions in it. Our
    /// functions would call such functions with the rights of our owner.
    #[error("the schema {schema} cannot be used: {reason}")]
    #[non_exhaustive]
    SchemaNotOurs {
        /// The schema.
        schema: String,
        /// The reason, and the remedy.
        reason: String,
    },
    /// The database takes no writes, because it is a standby or its settings make it read only.
    #[error("the database takes no writes: {reason}")]
    #[non_exhaustive]
    ReadOnly {
        /// The reason, as the database gives it.
        reason: String,
    },
    /// A table is protected, so the database refuses writes and a store cannot only observe.
    #[error("{table} is protected, so unfenced writes are refused: unprotect it first, or enforce")]
    #[non_exhaustive]
    Protected {
        /// The table, or its trigger.
        table: String,
    },
    /// The role lacks a right that a fenced write needs, or the operation that was asked for.
    #[error(
        "this role may not {what}: let the owner of the tables run {grant}; \
         see docs/operations/rights.md"
    )]
    #[non_exhaustive]
    RightMissing {
        /// The action that the role may not do.
        what: String,
        /// The statement that gives the role the right, as in `docs/operations/rights.md`.
        grant: String,
    },
}
