/// What a role of the database is for, see [`FencedStore::check`](crate::FencedStore::check).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rights {
    /// Transactions under grants that others have claimed.
    Write,
    /// The same, and claims.
    ClaimAndWrite,
}

/// Why this build cannot use a database as it is, or not in this role. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotReady {
    /// A migration has not been applied, and those after it have not either.
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
    /// A migration has been applied that this build does not know.
    #[error(
        "this database has migration {version} ({name}), and this version knows none after \
         {known}: start a version that is as new as the database"
    )]
    #[non_exhaustive]
    Newer {
        /// Its number.
        version: i64,
        /// Its name.
        name: String,
        /// The number of the last one that this build knows.
        known: i64,
    },
    /// A migration was begun and did not come to its end. Only MySQL and MariaDB, where a change of
    /// the schema cannot be rolled back, get into that state by themselves.
    #[error(
        "migration {version} ({name}) was applied half way: find out why, \
         delete its row from {table}, and migrate again, which takes up what is there"
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
    /// The tables are those of a build before the first release, under other names. Nothing brings
    /// them up to date.
    #[error(
        "the tables of fenced-store in this database are of a build before 0.1, whose migration 1 \
         was called {name}: stop all programs that use them, drop {tables}, and migrate again"
    )]
    #[non_exhaustive]
    BeforeFirstRelease {
        /// The name of their first migration.
        name: String,
        /// What to drop.
        tables: &'static str,
    },
    /// A migration with this number has been applied, and it was another one.
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
        /// What to drop.
        tables: &'static str,
    },
    /// A schema of ours belongs to another role, or lets another role create functions that ours
    /// would call with the rights of their owner.
    #[error("the schema {schema} cannot be used: {reason}")]
    #[non_exhaustive]
    SchemaNotOurs {
        /// The schema.
        schema: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The database takes no writes: it is a standby, or read only by its settings.
    #[error("the database takes no writes: {reason}")]
    #[non_exhaustive]
    ReadOnly {
        /// Why, as the database says it.
        reason: String,
    },
    /// A table is protected: a store that refuses cannot only observe.
    #[error("{table} is protected, so unfenced writes are refused: unprotect it first, or enforce")]
    #[non_exhaustive]
    Protected {
        /// The table, or its trigger.
        table: String,
    },
    /// The role lacks a right that a fenced write needs.
    #[error(
        "this role may not {what}: let the owner of the tables say {grant}; see docs/operations.md"
    )]
    #[non_exhaustive]
    RightMissing {
        /// What it may not do.
        what: String,
        /// The statement that gives it the right, as in `docs/operations.md`.
        grant: String,
    },
}
