use lock_core::{InvalidName, ResourceName};

use crate::{
    Dialect, FenceError, FencedStore, dialect::sealed::Operations, uninterrupted::uninterrupted,
};

/// A table that refuses writes without a fence, and how its rows map to resources.
///
/// Names are taken literally: without quotes, in the upper and lower case that the database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a table is not protected before `FencedStore::protect` has been called"]
pub struct Protection {
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
    pub(crate) resources: Resources,
}

/// How a table maps to resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resources {
    /// Each row is one: the prefix, followed by the value of the column as text.
    Rows {
        id_column: String,
        prefix: ResourceName,
    },
    /// The whole table is one.
    Table(ResourceName),
}

impl Protection {
    /// Each row is a resource of its own, named by prefix + id: with the column `id` and the prefix
    /// `account:`, the row 42 is `account:42`.
    ///
    /// A statement that changes an id needs the fences of both, and one that empties the table is
    /// refused.
    ///
    /// # Errors
    /// If the prefix could not begin the name of a resource.
    pub fn rows(
        table: impl Into<String>,
        id_column: impl Into<String>,
        prefix: &str,
    ) -> Result<Self, InvalidName> {
        let prefix = ResourceName::new(prefix)?;
        let id_column = id_column.into();
        Ok(Self::new(table, Resources::Rows { id_column, prefix }))
    }

    /// The whole table is one resource.
    pub fn whole(table: impl Into<String>, resource: ResourceName) -> Self {
        Self::new(table, Resources::Table(resource))
    }

    /// The schema of the table; in MySQL and MariaDB this is a database. By default the
    /// connection's own search for tables decides. SQLite only knows `main`.
    pub fn in_schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = Some(schema.into());
        self
    }

    fn new(table: impl Into<String>, resources: Resources) -> Self {
        let table = table.into();
        Self {
            schema: None,
            table,
            resources,
        }
    }

    /// The name of the table for use in a statement, each part in these quotes.
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    pub(crate) fn quoted(&self, quote: char) -> String {
        let table = quoted(&self.table, quote);
        match &self.schema {
            Some(schema) => format!("{}.{table}", quoted(schema, quote)),
            None => table,
        }
    }
}

/// An identifier in quotes.
#[cfg(any(feature = "mysql", feature = "postgres", feature = "sqlite"))]
pub(crate) fn quoted(name: &str, quote: char) -> String {
    let doubled = name.replace(quote, &format!("{quote}{quote}"));
    format!("{quote}{doubled}{quote}")
}

impl<DB: Dialect> FencedStore<DB> {
    /// Makes the database refuse writes to a table that do not come through a fenced transaction of
    /// the resource: from this program, an ORM, yesterday's script or a session of `psql`.
    ///
    /// Call it as often as you like, after [`migrate`](FencedStore::migrate): existing triggers
    /// stay, and with another description the table is protected anew. It needs a role that may
    /// create triggers on the table. Transactions that are in progress when the first table is
    /// protected may be refused.
    ///
    /// A refused statement changes nothing; `?` turns its error into [`FenceError::Unfenced`],
    /// [`FenceError::WrongResource`] or [`FenceError::Stale`].
    ///
    /// A net against bugs, NOT against malice: anybody who may drop the triggers, or write the
    /// tables of this crate, can write around them, and so can a superuser in a session with
    /// `session_replication_role = replica` (Postgres). NOT seen by triggers: in MySQL and MariaDB
    /// `TRUNCATE` and the cascades of foreign keys; in SQLite a row that `REPLACE` removes because
    /// of a key that is not its id; in Postgres `TRUNCATE` of a partition that is younger than the
    /// call. docs/protected-tables.md has the list.
    ///
    /// # Errors
    /// [`FenceError::CannotProtect`] if there is no such table or column; otherwise errors of the
    /// database. In Postgres and SQLite nothing has changed then; elsewhere call again. In MySQL
    /// and MariaDB it is [`FenceError::Busy`] if a transaction has used the table for 50 s, or
    /// another migration or protection takes longer than 60 s. Postgres waits for its
    /// `lock_timeout`.
    ///
    /// # Cancel safety
    /// Cancel safe: work that has been started is finished in the background, or not done at all.
    pub async fn protect(&self, protection: &Protection) -> Result<(), FenceError> {
        let (pool, protection) = (self.pool().clone(), protection.clone());
        uninterrupted(async move { <DB as Operations>::protect(&pool, &protection).await }).await
    }

    /// Removes everything that [`protect`](FencedStore::protect) has created for this table,
    /// however it was described. Does nothing if the table is not protected.
    ///
    /// # Errors
    /// As [`protect`](FencedStore::protect).
    ///
    /// # Cancel safety
    /// Cancel safe: work that has been started is finished in the background, or not done at all.
    pub async fn unprotect(&self, protection: &Protection) -> Result<(), FenceError> {
        let (pool, protection) = (self.pool().clone(), protection.clone());
        uninterrupted(async move { <DB as Operations>::unprotect(&pool, &protection).await }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(any(feature = "mysql", feature = "postgres"))]
    fn a_quote_in_a_name_stays_inside() {
        let protection = Protection::rows("a\"b", "id", "account:").unwrap();
        assert_eq!(protection.quoted('"'), r#""a""b""#);
        assert_eq!(protection.in_schema("c`d").quoted('`'), "`c``d`.`a\"b`");
    }

    #[test]
    fn a_prefix_begins_a_name() {
        for prefix in ["", "two words", "quote\"", "back\\slash"] {
            assert!(
                Protection::rows("accounts", "id", prefix).is_err(),
                "{prefix}"
            );
        }
    }
}
