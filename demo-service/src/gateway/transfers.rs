//! `/v1/accounts/{id}/transfers`: two resources in one transaction, each with a fence of its own;
//! and its unfenced twin.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName},
};
use fenced_store::{
    FenceError, Receipt,
    http::{FENCING_TOKEN, Fenced, Problem, Rejection},
};
use lock_core::ResourceName;

use super::{
    accounts,
    app::App,
    body::{Body, Segment},
    error::ApiError,
    problems, time_limit,
    wire::{AccountBody, TransferBody, TransferredBody},
};
use crate::ledger::Ledger;

/// The request header with the token of the account that receives. `Fencing-Token` is that of the
/// account in the path.
pub(super) const FENCING_TOKEN_TO: HeaderName = HeaderName::from_static("fencing-token-to");

/// `POST`: takes from the account of the path and gives to another one, if the store knows both
/// tokens for current. Which one was refused is the `resource` of the problem.
///
/// A transfer that is sent twice is made twice.
pub(super) async fn transfer<DB: Ledger>(
    State(app): State<App<DB>>,
    fenced: Fenced,
    Segment(id): Segment,
    headers: HeaderMap,
    Body(TransferBody { to, amount }): Body<TransferBody>,
) -> Result<(Receipt, Json<TransferredBody>), ApiError> {
    let moving = Moving::new(id, to, amount)?;
    let receiver = receiver(&app, &headers, &accounts::resource(&moving.to)?)?;
    let transferring = moving.carry_out(app.clone(), fenced, receiver);
    let transferred = time_limit::to_the_end(app.time_limit, &app.under_way, transferring);
    let (receipt, body) = transferred.await?;
    Ok((receipt, Json(body)))
}

/// `POST`, unfenced: one transaction like the other, and whoever asks may make it.
pub(super) async fn transfer_unfenced<DB: Ledger>(
    State(app): State<App<DB>>,
    Segment(id): Segment,
    Body(TransferBody { to, amount }): Body<TransferBody>,
) -> Result<Json<TransferredBody>, ApiError> {
    let moving = Moving::new(id, to, amount)?;
    let transferring = moving.carry_out_unfenced(app.clone());
    let transferred = time_limit::to_the_end(app.time_limit, &app.under_way, transferring);
    Ok(Json(transferred.await?))
}

/// The token of the account that receives, checked as strictly as the layer checks the other one.
fn receiver<DB: Ledger>(
    app: &App<DB>,
    headers: &HeaderMap,
    resource: &ResourceName,
) -> Result<Fenced, Problem> {
    let values = headers.get_all(FENCING_TOKEN_TO).iter().cloned();
    let headers: HeaderMap = values.map(|value| (FENCING_TOKEN.clone(), value)).collect();
    let fenced = Fenced::from_headers(&headers, &app.tokens);
    let fenced = fenced.and_then(|fenced| fenced.ok_or(Rejection::Missing));
    let checked = fenced.and_then(|fenced| {
        fenced.must_be_about(resource)?;
        Ok(fenced)
    });
    checked.map_err(|rejection| {
        let detail = format!("Fencing-Token-To: {rejection}");
        Problem::from(&rejection)
            .detail(detail)
            .with("header", FENCING_TOKEN_TO.as_str())
    })
}

struct Moving {
    from: String,
    to: String,
    amount: i64,
}

impl Moving {
    /// # Errors
    /// If there cannot be such a transfer.
    fn new(from: String, to: String, amount: i64) -> Result<Self, ApiError> {
        accounts::resource(&from)?;
        accounts::resource(&to)?;
        if to == from || !(1..=accounts::BALANCE_MAX).contains(&amount) {
            let detail = format!(
                "a transfer goes to another account, and is of a whole number from 1 to {}",
                accounts::BALANCE_MAX
            );
            return Err(Problem::new(problems::UNPROCESSABLE).detail(detail).into());
        }
        Ok(Self { from, to, amount })
    }

    async fn carry_out<DB: Ledger>(
        self,
        app: App<DB>,
        from: Fenced,
        to: Fenced,
    ) -> Result<(Receipt, TransferredBody), ApiError> {
        // The store enters both in the order of their names, whoever asks.
        let mut tx = app.store().begin(&from).and(&to).await?;
        match self.make::<DB>(&mut tx).await? {
            Ok(body) => Ok((tx.commit().await?, body)),
            Err(refused) => {
                tx.rollback().await?;
                Err(refused.into())
            }
        }
    }

    async fn carry_out_unfenced<DB: Ledger>(
        self,
        app: App<DB>,
    ) -> Result<TransferredBody, ApiError> {
        let mut tx = app.store().pool().begin().await?;
        match self.make::<DB>(&mut tx).await? {
            Ok(body) => {
                tx.commit().await.map_err(accounts::of_commit)?;
                Ok(body)
            }
            Err(refused) => {
                tx.rollback().await?;
                Err(refused.into())
            }
        }
    }

    /// Makes both sides of the transfer, or says why it cannot be made.
    async fn make<DB: Ledger>(
        &self,
        connection: &mut DB::Connection,
    ) -> Result<Result<TransferredBody, Problem>, FenceError> {
        // Always in this order, so that transfers there and back do not wait for each other.
        let mut steps = [(&self.from, -self.amount), (&self.to, self.amount)];
        steps.sort();
        let mut after = Vec::with_capacity(2);
        for (id, amount) in steps {
            match DB::add(connection, id, amount).await? {
                Some(balance) => after.push((id, balance)),
                None => return Ok(Err(refused::<DB>(connection, id).await?)),
            }
        }
        let account = |wanted: &String| {
            let balance = after.iter().find(|(id, _)| *id == wanted);
            let balance = balance.map(|(_, balance)| *balance).unwrap_or_default();
            let id = wanted.clone();
            AccountBody { id, balance }
        };
        let (from, to) = (account(&self.from), account(&self.to));
        Ok(Ok(TransferredBody { from, to }))
    }
}

/// Why nothing could be added.
async fn refused<DB: Ledger>(
    connection: &mut DB::Connection,
    id: &str,
) -> Result<Problem, FenceError> {
    Ok(match DB::balance(connection, id).await? {
        None => accounts::unknown(id),
        Some(balance) => Problem::new(problems::BALANCE_OUT_OF_RANGE)
            .detail("no account has less than 0 or more than 999999999999999")
            .with("id", id)
            .with("balance", balance),
    })
}
