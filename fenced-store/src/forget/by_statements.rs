//! The statements that forget marks in MySQL, MariaDB and SQLite.

use std::{collections::HashSet, time::Duration};

use lock_core::{FencingToken, Issuer, ResourceName};

use super::{Forget, LEAST_OF_CLOCK, not_by_the_clock};
use crate::{
    FenceError,
    admin::AdminError,
    dialect::{
        Value::{Number, Text},
        by_statements::Wording,
        literal::literal,
    },
    rule::marks::{self, token, word},
};

/// Idle marks, and the condition that they fulfil.
pub(crate) struct Idle {
    pub(crate) marks: Vec<(String, FencingToken)>,
    /// The resource after which the next batch begins; `None` at the end.
    pub(crate) last: Option<String>,
    condition: String,
}

/// Looks for idle marks after a name. `None` if nothing was ever claimed, or if there are no more.
pub(crate) async fn idle<DB: Wording>(
    connection: &mut DB::Connection,
    order: &Forget,
    after: &str,
) -> Result<Option<Idle>, AdminError> {
    let (longest_hold, now) = times::<DB>(connection).await?;
    order.check_age(longest_hold)?;
    if order.below.is_none() && after.is_empty() {
        let small = format!(
            "SELECT resource FROM {}fenced_high_water_mark WHERE token < {LEAST_OF_CLOCK} LIMIT 1",
            DB::SCHEMA
        );
        if let Some(row) = DB::look(connection, &small, &[]).await?.first() {
            return Err(not_by_the_clock(
                &DB::text(row, 0).map_err(FenceError::from)?,
            ));
        }
    }
    let Some(issuer) = marks::issuer::<DB>(connection).await? else {
        return Ok(None);
    };
    let condition = condition::<DB>(order, now, &issuer);
    let old = format!(
        "SELECT resource, token FROM {}fenced_high_water_mark \
         WHERE resource > ? AND {condition} ORDER BY resource LIMIT {MOST}",
        DB::SCHEMA
    );
    let rows = DB::look(connection, &old, &[Text(after)]).await?;
    let mark = |row| {
        let resource: ResourceName = word::<DB, _>(row, 0)?;
        Ok((resource.to_string(), token::<DB>(row, 1)?))
    };
    let marks = rows.iter().map(mark);
    let marks = marks.collect::<Result<Vec<(String, FencingToken)>, FenceError>>()?;
    let is_full = marks.len() >= MOST as usize;
    let last = marks.last().filter(|_| is_full);
    let last = last.map(|(resource, _)| resource.clone());
    let idle = Idle {
        marks,
        last,
        condition,
    };
    Ok((!rows.is_empty()).then_some(idle))
}

impl Idle {
    /// The `WHERE` of these marks, as long as they are idle.
    pub(crate) fn condition(&self) -> String {
        let names: Vec<_> = self.marks.iter().map(|(name, _)| literal(name)).collect();
        format!("resource IN ({}) AND {}", names.join(", "), self.condition)
    }

    /// The greatest of their tokens; `None` if there are none.
    pub(crate) fn top(&self) -> Option<FencingToken> {
        self.marks.iter().map(|(_, token)| *token).max()
    }
}

/// The most rows of one batch. It may be greater than in Postgres, because these databases do not
/// limit the number of locks.
pub(crate) const MOST: u32 = 1000;

/// The resources whose leases live in this database, whatever the prefix of the lock service is. A
/// lease that is granted after this look has a token above the floor.
pub(crate) async fn leased<DB: Wording>(
    connection: &mut DB::Connection,
    end: &str,
) -> Result<HashSet<String>, FenceError> {
    let living = format!(
        "SELECT SUBSTR(resource, INSTR(resource, ' ') + 1) FROM {}fenced_lease \
         WHERE holder <> '' AND {end} > 1000 * {}",
        DB::SCHEMA,
        DB::NOW_MS
    );
    let rows = DB::look(connection, &living, &[]).await?;
    rows.iter().map(|row| Ok(DB::text(row, 0)?)).collect()
}

/// The longest hold that was stated, and the present time since 1970, by the clock of the database.
pub(crate) async fn times<DB: Wording>(
    connection: &mut DB::Connection,
) -> Result<(Duration, Duration), FenceError> {
    let times = format!(
        "SELECT longest_hold_ms, {} FROM {}fenced_forgotten",
        DB::NOW_MS,
        DB::SCHEMA
    );
    let rows = DB::look(connection, &times, &[]).await?;
    let row = rows.first().ok_or(sqlx::Error::RowNotFound)?;
    let (longest_hold, now) = (DB::number(row, 0)?, DB::number(row, 1)?);
    let millis = |number: i64| Duration::from_millis(number.unsigned_abs());
    Ok((millis(longest_hold), millis(now)))
}

fn condition<DB: Wording>(order: &Forget, now: Duration, issuer: &Issuer) -> String {
    let before = now.saturating_sub(order.older_than).as_millis();
    format!(
        "issuer = {} AND token < {} AND {} < {before}",
        literal(issuer.as_str()),
        order.ceiling(now),
        DB::millis("claimed_at"),
    )
}

pub(crate) async fn state_longest_hold<DB: Wording>(
    connection: &mut DB::Connection,
    hold: Duration,
) -> Result<(), FenceError> {
    let millis = Number(hold.as_millis().try_into().unwrap_or(i64::MAX));
    let state = format!(
        "UPDATE {}fenced_forgotten SET longest_hold_ms = ? WHERE longest_hold_ms < ?",
        DB::SCHEMA
    );
    DB::change(connection, &state, &[millis, millis])
        .await
        .map(drop)
}
