//! `/v1/jobs/{id}/{slot}` and its unfenced twin: adds to an account, once for each slot.

use axum::{Json, extract::State};
use fenced_http::{Fenced, Problem};
use fenced_jobs::{RunSlot, Slot, Standing};
use fenced_store::{FenceError, Receipt};
use lock_core::ResourceName;
use palisade_gateway::{ApiError, Body, Segment, problems};

use super::{
    accounts::{self, BALANCE_MAX, check_balance, of_commit},
    app::App,
    job_resource,
    wire::{RanBody, RunBody},
    witness::Witness,
};
use crate::{events::What, ledger::Ledger};

/// The change that a request made: the balance before and after.
type Change = (Option<i64>, i64);

/// `PUT`: the store compares the token, looks whether the slot is done, marks it and adds, all in
/// one transaction.
pub(super) async fn run<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    fenced: Fenced,
    Segment((id, slot)): Segment<(String, String)>,
    Body(RunBody { add }): Body<RunBody>,
) -> Result<(Receipt, Json<RanBody>), ApiError> {
    let (resource, slot) = names(&id, slot)?;
    check_balance(add)?;
    let token = fenced.token();
    let running = run_fenced(app.clone(), fenced, id, slot, add);
    let ran = app.time_limit.to_the_end(running);
    let (receipt, ran, change) = ran.await?;
    let (_, balance) = change;
    if ran {
        let written = What::written(Some(token), Some(receipt.token()), change);
        witness.note(&resource, written);
    }
    Ok((receipt, Json(RanBody { ran, balance })))
}

async fn run_fenced<DB: Ledger>(
    app: App<DB>,
    fenced: Fenced,
    id: String,
    slot: Slot,
    add: i64,
) -> Result<(Receipt, bool, Change), ApiError> {
    let mut tx = app.store.begin(&fenced).await?;
    let is_due = tx.run_slot(&slot).await?.standing == Standing::Due;
    let add = if is_due { add } else { 0 };
    let added = add_to::<DB>(&mut tx, &id, add).await;
    let change = added.map_err(|error| error.or(FenceError::from))?;
    Ok((tx.commit().await?, is_due, change))
}

/// `PUT`, unfenced: any client may do the job. A runner of jobs looks first whether the slot is
/// done. That look is too early, because it comes before the write.
pub(super) async fn run_unfenced<DB: Ledger>(
    State(app): State<App<DB>>,
    witness: Witness,
    Segment((id, slot)): Segment<(String, String)>,
    Body(RunBody { add }): Body<RunBody>,
) -> Result<Json<RanBody>, ApiError> {
    let (resource, _) = names(&id, slot)?;
    check_balance(add)?;
    let running = unfenced(app.clone(), id, add);
    let ran = app.time_limit.to_the_end(running);
    let change = ran.await?;
    let (_, balance) = change;
    witness.note(&resource, What::written(witness.token(), None, change));
    Ok(Json(RanBody { ran: true, balance }))
}

async fn unfenced<DB: Ledger>(app: App<DB>, id: String, add: i64) -> Result<Change, ApiError> {
    let mut connection = app.store.pool().acquire().await?;
    let added = add_to::<DB>(&mut connection, &id, add).await;
    added.map_err(|error| error.or(of_commit))
}

/// Adds to an account. The result is right even if other requests do the same at the same time.
async fn add_to<DB: Ledger>(
    connection: &mut DB::Connection,
    id: &str,
    add: i64,
) -> Result<Change, NotAdded> {
    loop {
        let before = DB::balance(connection, id).await?;
        let after = before.unwrap_or(0).saturating_add(add);
        if check_balance(after).is_err() {
            return Err(NotAdded::TooMuch);
        }
        let is_written = match before {
            Some(before) => DB::replace_balance(connection, id, before, after).await?,
            None => DB::open_account(connection, id, after).await?,
        };
        if is_written {
            return Ok((before, after));
        }
    }
}

/// The reason why nothing was added.
enum NotAdded {
    /// The new balance would be too great for the account.
    TooMuch,
    Database(sqlx::Error),
}

impl From<sqlx::Error> for NotAdded {
    fn from(error: sqlx::Error) -> Self {
        Self::Database(error)
    }
}

impl NotAdded {
    /// `of_database` says what an error of the database means here.
    fn or(self, of_database: impl FnOnce(sqlx::Error) -> FenceError) -> ApiError {
        match self {
            Self::TooMuch => {
                let detail = format!("the balance would be above {BALANCE_MAX}");
                Problem::new(problems::UNPROCESSABLE).detail(detail).into()
            }
            Self::Database(error) => of_database(error).into(),
        }
    }
}

/// The resource of the job, and its slot.
fn names(id: &str, slot: String) -> Result<(ResourceName, Slot), ApiError> {
    accounts::resource(id)?;
    let malformed =
        |error: lock_core::InvalidName| Problem::new(problems::MALFORMED).detail(error.to_string());
    let resource = ResourceName::new(job_resource(id)).map_err(malformed)?;
    Ok((resource, slot.try_into().map_err(malformed)?))
}
