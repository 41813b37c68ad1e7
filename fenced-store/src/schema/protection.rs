use lock_core::{InvalidName, ResourceName};

/// A table that refuses writes without a fence, and the map from its rows to resources.
///
/// Names are taken literally: without quotes, in the upper and lower case that the database uses.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a table is not protected before `FencedStore::protect` has been called"]
pub struct Protection {
    pub(crate) schema: Option<String>,
    pub(crate) table: String,
    pub(crate) resources: Resources,
}

/// The map from the rows of a table to resources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Resources {
    /// Each row is a resource. Its name is the prefix, followed by the value of the column as text.
    Rows {
        id_column: String,
        prefix: ResourceName,
    },
    /// The whole table is one resource.
    Table(ResourceName),
}

impl Protection {
    /// Each row is a resource of its own, and its name is prefix + id. With the column `id` and the
    /// prefix `account:`, the row 42 is `account:42`.
    ///
    /// In MySQL and MariaDB the column is one of integers, `DECIMAL`, `CHAR`, `VARCHAR`, `TEXT` or
    /// `UUID`, and in SQLite each id is an integer or a text.
    ///
    /// A statement that changes an id needs the fences of both ids. A statement that empties the
    /// table is refused.
    ///
    /// # Errors
    /// [`InvalidName`] if the prefix cannot begin the name of a resource.
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

    /// The schema of the table; in MySQL and MariaDB this is a database. By default the connection
    /// finds the table as it finds any other table. SQLite only knows `main`.
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
    #[cfg(feature = "postgres")]
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: a prefix after which no id gives a legal name.
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
