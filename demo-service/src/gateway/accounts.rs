//! `/v1/accounts/{id}` and its unfenced twin: the same account, with and without the fence.

use axum::{Json, extract::State};
use fenced_store::{
    FenceError, Receipt,
    http::{Fenced, Problem},
};
use lock_core::ResourceName;

use super::{
    account_resource,
    app::App,
    body::{Body, Segment},
    error::ApiError,
    problems, time_limit,
    version::{Condition, Version, Written, mismatch},
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

/// `GET`: a read with a token is fenced, so that a stale holder learns here that it is stale.
pub(super) async fn read<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    fenced: Option<Fenced>,
    Segment(id): Segment,
) -> Result<(Option<Receipt>, Version, Json<AccountBody>), ApiError> {
    let resource = resource(&id)?;
    let (receipt, balance) = match fenced {
        Some(fenced) => {
            // A read does not use up a number.
            let mut tx = app.store().begin(fenced.sequencer()).await?;
            let balance = DB::balance(&mut tx, &id).await?;
            (Some(tx.commit().await?), balance)
        }
        None => (None, plain_balance(&app, &id).await?),
    };
    let balance = balance.ok_or_else(|| unknown(&id))?;
    witness.note(&resource, What::Read { balance });
    Ok((receipt, Version(balance), Json(AccountBody { id, balance })))
}

/// `PUT`: the store compares the token and writes in one transaction.
pub(super) async fn write<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    fenced: Fenced,
    condition: Condition,
    Segment(id): Segment,
    Body(BalanceBody { balance }): Body<BalanceBody>,
) -> Result<(Receipt, Version, Json<AccountBody>), ApiError> {
    let resource = resource(&id)?;
    check_balance(balance)?;
    let token = fenced.token();
    let writing = fenced_write(app.clone(), fenced, condition, id.clone(), balance);
    // Refusals are recorded around the handler, because the edge refuses, too.
    let written = time_limit::to_the_end(app.time_limit, &app.under_way, writing);
    let (receipt, before) = written.await?;
    let written = What::WriteAccepted {
        token: Some(token),
        status: 200,
        high_water: Some(receipt.token()),
        before,
        after: balance,
    };
    witness.note(&resource, written);
    Ok((receipt, Version(balance), Json(AccountBody { id, balance })))
}

async fn fenced_write<DB: Ledger>(
    app: App<DB>,
    fenced: Fenced,
    condition: Condition,
    id: String,
    balance: i64,
) -> Result<(Receipt, Option<i64>), ApiError> {
    // The fence comes first, then the condition.
    let mut tx = app.store().begin(&fenced).await?;
    match condition.write::<DB>(&mut tx, &id, balance).await? {
        Written::Over(before) => Ok((tx.commit().await?, before)),
        Written::Otherwise => {
            tx.rollback().await?;
            Err(mismatch(&id).into())
        }
    }
}

/// `GET`, unfenced: anybody may read.
pub(super) async fn read_unfenced<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    Segment(id): Segment,
) -> Result<(Version, Json<AccountBody>), ApiError> {
    let resource = resource(&id)?;
    let balance = plain_balance(&app, &id)
        .await?
        .ok_or_else(|| unknown(&id))?;
    witness.note(&resource, What::Read { balance });
    Ok((Version(balance), Json(AccountBody { id, balance })))
}

/// `PUT`, unfenced: the last write wins, as in a store that knows no tokens. The token of the
/// request is recorded for the scenario, and decides nothing.
pub(super) async fn write_unfenced<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    condition: Condition,
    Segment(id): Segment,
    Body(BalanceBody { balance }): Body<BalanceBody>,
) -> Result<(Version, Json<AccountBody>), ApiError> {
    let resource = resource(&id)?;
    check_balance(balance)?;
    let writing = unfenced_write(app.clone(), condition, id.clone(), balance);
    let before = time_limit::to_the_end(app.time_limit, &app.under_way, writing).await?;
    let (token, after) = (witness.token(), balance);
    let written = What::WriteAccepted {
        token,
        status: 200,
        high_water: None,
        before,
        after,
    };
    witness.note(&resource, written);
    Ok((Version(balance), Json(AccountBody { id, balance })))
}

async fn unfenced_write<DB: Ledger>(
    app: App<DB>,
    condition: Condition,
    id: String,
    balance: i64,
) -> Result<Option<i64>, ApiError> {
    let mut connection = app.store().pool().acquire().await?;
    let written = condition.write::<DB>(&mut connection, &id, balance).await;
    match written.map_err(of_commit)? {
        Written::Over(before) => Ok(before),
        Written::Otherwise => Err(mismatch(&id).into()),
    }
}

/// An error of a commit, or of a statement that is its own transaction. Unless the database has
/// answered that it refused, it may have been committed.
pub(super) fn of_commit(source: sqlx::Error) -> FenceError {
    if ledger::was_refused(&source) {
        source.into()
    } else {
        FenceError::CommitUnknown { source }
    }
}

async fn plain_balance<DB: Ledger>(app: &App<DB>, id: &str) -> Result<Option<i64>, FenceError> {
    let mut connection = app.store().pool().acquire().await?;
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

fn check_balance(balance: i64) -> Result<(), ApiError> {
    if (0..=BALANCE_MAX).contains(&balance) {
        return Ok(());
    }
    let detail = format!("a balance is a whole number from 0 to {BALANCE_MAX}");
    Err(Problem::new(problems::UNPROCESSABLE).detail(detail).into())
}

pub(super) fn unknown(id: &str) -> Problem {
    Problem::new(problems::ACCOUNT_UNKNOWN)
        .detail("no account has this id yet: a PUT opens it")
        .with("id", id)
}
