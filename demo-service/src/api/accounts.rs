//! `/v1/accounts/{id}` and its unfenced twin: the same account, with and without the fence.

use axum::{Json, extract::State};
use fenced_http::{Fenced, Problem};
use fenced_store::{FenceError, Receipt};
use lock_core::ResourceName;
use palisade_gateway::{ApiError, Body, Segment, problems};

use super::{
    ACCOUNT_UNKNOWN, account_resource,
    app::App,
    wire::{AccountBody, BalanceBody},
    witness::Witness,
};
use crate::{
    events::What,
    ledger::{self, Ledger},
};

/// The greatest balance. It is exact in every JSON reader, even where all numbers are doubles.
pub(super) const BALANCE_MAX: i64 = 999_999_999_999_999;

/// The longest id of an account, in bytes.
pub(super) const ID_LEN_MAX: usize = 64;

/// `GET`: a read with a token is fenced, so that a stale holder learns that it is stale.
pub(super) async fn read<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    fenced: Option<Fenced>,
    Segment(id): Segment,
) -> Result<(Option<Receipt>, Json<AccountBody>), ApiError> {
    let resource = resource(&id)?;
    let (receipt, balance) = match fenced {
        Some(fenced) => {
            let mut tx = app.store.begin(&fenced).await?;
            let balance = DB::balance(&mut tx, &id).await?;
            (Some(tx.commit().await?), balance)
        }
        None => (None, plain_balance(&app, &id).await?),
    };
    let balance = balance.ok_or_else(|| unknown(&id))?;
    witness.note(&resource, What::Read { balance });
    Ok((receipt, Json(AccountBody { id, balance })))
}

/// `PUT`: the store compares the token and writes in one transaction.
pub(super) async fn write<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    fenced: Fenced,
    Segment(id): Segment,
    Body(BalanceBody { balance }): Body<BalanceBody>,
) -> Result<(Receipt, Json<AccountBody>), ApiError> {
    let resource = resource(&id)?;
    check_balance(balance)?;
    let token = fenced.token();
    let writing = fenced_write(app.clone(), fenced, id.clone(), balance);
    // Refusals are recorded around the handler, because the edge refuses, too.
    let written = app.time_limit.to_the_end(writing);
    let (receipt, before) = written.await?;
    let written = What::written(Some(token), Some(receipt.token()), (before, balance));
    witness.note(&resource, written);
    Ok((receipt, Json(AccountBody { id, balance })))
}

async fn fenced_write<DB: Ledger>(
    app: App<DB>,
    fenced: Fenced,
    id: String,
    balance: i64,
) -> Result<(Receipt, Option<i64>), ApiError> {
    let mut tx = app.store.begin(&fenced).await?;
    let before = set_balance::<DB>(&mut tx, &id, balance).await?;
    Ok((tx.commit().await?, before))
}

/// Writes a balance, and returns the balance that it has replaced: `None` if it opened the account.
/// The result is right even if others write at the same time, without a fence.
async fn set_balance<DB: Ledger>(
    connection: &mut DB::Connection,
    id: &str,
    balance: i64,
) -> Result<Option<i64>, sqlx::Error> {
    loop {
        let before = DB::balance(connection, id).await?;
        let written = match before {
            Some(before) => DB::replace_balance(connection, id, before, balance).await?,
            None => DB::open_account(connection, id, balance).await?,
        };
        if written {
            return Ok(before);
        }
    }
}

/// `GET`, unfenced: anybody may read.
pub(super) async fn read_unfenced<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    Segment(id): Segment,
) -> Result<Json<AccountBody>, ApiError> {
    let resource = resource(&id)?;
    let balance = plain_balance(&app, &id)
        .await?
        .ok_or_else(|| unknown(&id))?;
    witness.note(&resource, What::Read { balance });
    Ok(Json(AccountBody { id, balance }))
}

/// `PUT`, unfenced: the last write wins, as in a store that knows no tokens. The token of the
/// request is recorded for the scenario, and decides nothing.
pub(super) async fn write_unfenced<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    Segment(id): Segment,
    Body(BalanceBody { balance }): Body<BalanceBody>,
) -> Result<Json<AccountBody>, ApiError> {
    let resource = resource(&id)?;
    check_balance(balance)?;
    let writing = unfenced_write(app.clone(), id.clone(), balance);
    let before = app.time_limit.to_the_end(writing).await?;
    let written = What::written(witness.token(), None, (before, balance));
    witness.note(&resource, written);
    Ok(Json(AccountBody { id, balance }))
}

async fn unfenced_write<DB: Ledger>(
    app: App<DB>,
    id: String,
    balance: i64,
) -> Result<Option<i64>, ApiError> {
    let mut connection = app.store.pool().acquire().await?;
    let written = set_balance::<DB>(&mut connection, &id, balance).await;
    Ok(written.map_err(of_commit)?)
}

/// An error of a commit, or of a statement that is its own transaction. Unless the database has
/// answered that it refused the transaction, it may have been committed.
pub(super) fn of_commit(source: sqlx::Error) -> FenceError {
    if ledger::was_refused(&source) {
        source.into()
    } else {
        FenceError::CommitUnknown { source }
    }
}

async fn plain_balance<DB: Ledger>(app: &App<DB>, id: &str) -> Result<Option<i64>, FenceError> {
    let mut connection = app.store.pool().acquire().await?;
    Ok(DB::balance(&mut connection, id).await?)
}

/// The resource that protects the account, if the id can be one.
pub(super) fn resource(id: &str) -> Result<ResourceName, ApiError> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if id.len() <= ID_LEN_MAX && !id.is_empty() && id.bytes().all(allowed) {
        return Ok(ResourceName::new(account_resource(id))?);
    }
    let detail = "the id of an account is 1 to 64 ASCII letters, digits, - _ and .";
    Err(Problem::new(problems::MALFORMED).detail(detail).into())
}

pub(super) fn check_balance(balance: i64) -> Result<(), ApiError> {
    if (0..=BALANCE_MAX).contains(&balance) {
        return Ok(());
    }
    let detail = format!("a balance is a whole number from 0 to {BALANCE_MAX}");
    Err(Problem::new(problems::UNPROCESSABLE).detail(detail).into())
}

fn unknown(id: &str) -> Problem {
    Problem::new(ACCOUNT_UNKNOWN)
        .detail("no account has this id yet: a PUT opens it")
        .with("id", id)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use fenced_store::SqliteFencedStore;
    use futures_util::future::try_join_all;
    use palisade_cli::AnyStore;
    use sqlx::{Sqlite, SqlitePool, sqlite::SqliteConnectOptions};

    use super::*;

    const WRITERS: i64 = 4;
    const WRITES: i64 = 100;

    /// Otherwise the record of the scenario would show a write that wiped out another one as
    /// harmless.
    /// Catches: a balance that is read before the write and not in it.
    #[tokio::test(flavor = "multi_thread")]
    async fn of_writes_at_the_same_time_each_tells_which_one_it_was_made_over() {
        let folder = tempfile::tempdir().unwrap();
        let file = SqliteConnectOptions::new()
            .filename(folder.path().join("accounts.db"))
            .create_if_missing(true);
        let store = SqliteFencedStore::new(SqlitePool::connect_with(file).await.unwrap());
        let any = AnyStore::Sqlite(store.clone());
        ledger::prepare(&any, None).await.unwrap();
        let writing = (0..WRITERS).map(async |writer| {
            let mut connection = store.pool().acquire().await?;
            let mut overwritten = Vec::new();
            for write in 0..WRITES {
                let balance = writer * WRITES + write;
                overwritten.push(set_balance::<Sqlite>(&mut connection, "1", balance).await?);
            }
            Ok::<_, sqlx::Error>(overwritten)
        });
        let overwritten = try_join_all(writing).await.unwrap().concat();
        let all: BTreeSet<_> = overwritten.iter().copied().collect();
        // No balance is written twice, so none can be overwritten twice.
        assert_eq!(all.len(), overwritten.len());
        assert!(all.contains(&None), "one has opened it");
    }
}
