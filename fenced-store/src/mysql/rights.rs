//! Whether a user may do what a fenced store does. The server is asked to explain a statement for
//! each right: for that it wants the same right as for the statement itself, whether the user has
//! it for this table, for the database, or by a role.

use std::fmt;

use futures_util::TryStreamExt;
use sqlx::{AssertSqlSafe, Either, Executor, MySqlPool, Row};

use super::error::{is_denied, of_our_call};
use crate::{FenceError, NotReady, Rights};

#[derive(Clone, Copy, Debug)]
enum Verb {
    Select,
    Insert,
    Update,
    Delete,
}

use Verb::{Delete, Insert, Select, Update};

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Select => "SELECT",
            Insert => "INSERT",
            Update => "UPDATE",
            Delete => "DELETE",
        })
    }
}

/// A table, and what transactions do with it, and what those do that claim, too.
struct Table {
    name: &'static str,
    /// Any column.
    column: &'static str,
    to_write: &'static [Verb],
    to_claim: &'static [Verb],
}

const TABLES: [Table; 4] = [
    Table {
        name: "_fenced_migrations",
        column: "version",
        to_write: &[Select],
        to_claim: &[Select],
    },
    Table {
        name: "fenced_lock_service",
        column: "name",
        to_write: &[],
        to_claim: &[Select, Insert],
    },
    Table {
        name: "fenced_high_water_mark",
        column: "token",
        to_write: &[Select],
        to_claim: &[Select, Insert, Update],
    },
    Table {
        name: "fenced_open_transaction",
        column: "token",
        to_write: &[Select, Insert, Delete],
        to_claim: &[Select, Insert, Delete],
    },
];

impl Table {
    const fn verbs(&self, rights: Rights) -> &'static [Verb] {
        match rights {
            Rights::Write => self.to_write,
            Rights::ClaimAndWrite => self.to_claim,
        }
    }

    fn explain(&self, verb: Verb) -> String {
        let Self { name, column, .. } = self;
        match verb {
            Select => format!("EXPLAIN SELECT {column} FROM {name}"),
            Insert => format!("EXPLAIN INSERT INTO {name} () VALUES ()"),
            Update => format!("EXPLAIN UPDATE {name} SET {column} = 0 WHERE FALSE"),
            Delete => format!("EXPLAIN DELETE FROM {name} WHERE FALSE"),
        }
    }
}

/// Fails with the first right that is missing: there the server stops.
pub(super) async fn check(pool: &MySqlPool, rights: Rights) -> Result<(), FenceError> {
    let needed: Vec<_> = TABLES
        .iter()
        .flat_map(|table| table.verbs(rights).iter().map(move |verb| (table, *verb)))
        .collect();
    let mut text = "SELECT CURRENT_USER() AS user".to_owned();
    for (table, verb) in &needed {
        text += &format!("; {}", table.explain(*verb));
    }
    let (mut user, mut answered) = (None, 0_usize);
    let mut connection = pool.acquire().await?;
    let mut answers = connection.fetch_many(sqlx::raw_sql(AssertSqlSafe(text)));
    loop {
        match answers.try_next().await {
            Ok(None) => return Ok(()),
            Ok(Some(Either::Left(_))) => answered += 1,
            Ok(Some(Either::Right(row))) if user.is_none() => user = Some(row.try_get("user")?),
            Ok(Some(Either::Right(_))) => {}
            Err(error) if is_denied(&error) => {
                let lacking = answered.checked_sub(1).and_then(|last| needed.get(last));
                let Some((table, verb)) = lacking else {
                    return Err(of_our_call(error));
                };
                let user: String = user.unwrap_or_default();
                return Err(missing(table, *verb, rights, &user).into());
            }
            Err(error) => return Err(of_our_call(error)),
        }
    }
}

/// The statement gives all the rights that are needed on the table.
fn missing(table: &Table, verb: Verb, rights: Rights, user: &str) -> NotReady {
    let verbs: Vec<String> = table.verbs(rights).iter().map(Verb::to_string).collect();
    let (name, host) = user.rsplit_once('@').unwrap_or((user, "%"));
    NotReady::RightMissing {
        what: format!("{verb} on {}", table.name),
        grant: format!(
            "GRANT {} ON {} TO '{name}'@'{host}'",
            verbs.join(", "),
            table.name
        ),
    }
}
