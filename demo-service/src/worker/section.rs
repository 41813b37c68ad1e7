use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::{
    keeper::{Knowledge, keep},
    step::{Step, tell},
};
use crate::{
    cli::WorkerArgs,
    client::{ClientError, GatewayClient, WriteAnswer},
    gateway::{account_resource, wire::LeaseBody},
};

/// How long one request for the lease waits in the lock service; then it is asked for again.
const LONG_POLL: Duration = Duration::from_secs(20);

/// A client that makes one deposit.
pub(super) struct Worker {
    args: WorkerArgs,
    client: GatewayClient,
    orders: mpsc::Receiver<()>,
}

/// How one pass through the critical section ended.
enum Pass {
    Done,
    /// Refused, or the lease was lost in time: begin again with a fresh lease and a fresh read.
    Again,
}

impl Worker {
    /// Makes the deposit, with as many leases as it takes.
    ///
    /// # Errors
    /// When the gateway does not answer, or not as it should.
    pub(super) async fn deposit(
        args: WorkerArgs,
        orders: mpsc::Receiver<()>,
    ) -> Result<(), ClientError> {
        let client = GatewayClient::new(args.gateway.clone(), Some(args.client))?;
        let mut worker = Self {
            args,
            client,
            orders,
        };
        loop {
            let lease = worker.acquire().await?;
            let (knowledge, known) = watch::channel(Knowledge::on_arrival(&lease));
            tell(&Step::Acquired { token: lease.token });
            let client = worker.client.clone();
            let pass = tokio::select! {
                pass = worker.section(&lease, known) => pass?,
                never = keep(&client, &lease, &knowledge) => match never {},
            };
            if let Pass::Done = pass {
                // False when the lease had ended meanwhile: there is nothing left to give back.
                let _held = client.release(&lease).await?;
                return Ok(());
            }
        }
    }

    async fn acquire(&self) -> Result<LeaseBody, ClientError> {
        let resource = account_resource(&self.args.account);
        loop {
            if let Some(lease) = self
                .client
                .acquire(&resource, self.args.ttl, LONG_POLL)
                .await?
            {
                return Ok(lease);
            }
        }
    }

    async fn section(
        &mut self,
        lease: &LeaseBody,
        mut known: watch::Receiver<Knowledge>,
    ) -> Result<Pass, ClientError> {
        let WorkerArgs {
            act,
            ref account,
            deposit,
            ..
        } = self.args;
        let token = Some(lease.fencing_token.as_str());
        let balance = self.client.balance(act, account, token).await?;
        tell(&Step::Read { balance });

        let balance = compute(balance, deposit, &mut known).await;
        if !known.borrow().live() {
            return Ok(Pass::Again);
        }
        tell(&Step::Ready { balance });
        if self.orders.recv().await.is_none() {
            return Ok(Pass::Done);
        }
        // The check above and this write are two steps. Whatever happens between them, happens.
        match self.client.write(act, account, balance, token).await? {
            WriteAnswer::Accepted { status, fenced } => {
                tell(&Step::Written { status, fenced });
                Ok(Pass::Done)
            }
            WriteAnswer::Refused { status, problem } => {
                tell(&Step::Refused { status, problem });
                Ok(Pass::Again)
            }
        }
    }
}

/// A computation that takes until the lease has been renewed once, or is lost.
async fn compute(balance: i64, deposit: i64, known: &mut watch::Receiver<Knowledge>) -> i64 {
    // The sender lives as long as this future: an error cannot happen and would end the wait.
    let _ended = known
        .wait_for(|known| known.renewals > 0 || known.lost)
        .await
        .is_err();
    balance + deposit
}
