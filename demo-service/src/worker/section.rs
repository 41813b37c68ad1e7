use std::time::Duration;

use tokio::sync::{mpsc, watch};

use super::{
    Job,
    knowledge::{Knowledge, keep},
    step::{Step, tell},
};
use crate::{
    client::{ClientError, GatewayClient, WriteAnswer},
    events::{Act, Story},
};
use palisade_gateway::wire::LeaseBody;

/// How long one request for the lease waits in the lock service; after that the client asks again.
pub(super) const LONG_POLL: Duration = Duration::from_secs(20);

/// The slot of the job.
const SLOT: &str = "2026-11-27T02:00:00Z";

/// A client that makes one deposit, or does one job.
pub(super) struct Worker {
    job: Job,
    client: GatewayClient,
    orders: mpsc::Receiver<()>,
}

/// The end of one pass through the critical section.
enum Pass {
    Done,
    /// Refused, or the lease was lost early: begin again with a fresh lease and a fresh read.
    Again,
}

impl Worker {
    /// Makes the deposit, with as many leases as necessary.
    ///
    /// # Errors
    /// If the gateway does not answer, or not as expected.
    pub(super) async fn deposit(job: Job, orders: mpsc::Receiver<()>) -> Result<(), ClientError> {
        let client = GatewayClient::new(job.gateway.clone(), Some(job.client))?;
        let mut worker = Self {
            job,
            client,
            orders,
        };
        loop {
            let lease = worker.acquire().await?;
            let (knowledge, known) = watch::channel(Knowledge::on_arrival(&lease));
            tell(&Step::Acquired {
                token: lease.token,
                header: lease.fencing_token.clone(),
            });
            let client = worker.client.clone();
            let pass = tokio::select! {
                biased;
                pass = worker.section(&lease.fencing_token, known) => pass?,
                never = keep(&client, &lease, &knowledge) => match never {},
            };
            if let Pass::Done = pass {
                // False if the lease had already ended: there is nothing left to give back.
                let _held = client.release(&lease).await?;
                return Ok(());
            }
        }
    }

    async fn acquire(&self) -> Result<LeaseBody, ClientError> {
        let resource = self.job.story.resource(&self.job.account);
        loop {
            if let Some(lease) = self
                .client
                .acquire(&resource, self.job.ttl, LONG_POLL)
                .await?
            {
                return Ok(lease);
            }
        }
    }

    /// The work under the lease.
    async fn section(
        &mut self,
        token: &str,
        mut known: watch::Receiver<Knowledge>,
    ) -> Result<Pass, ClientError> {
        let Job {
            act,
            story,
            ref account,
            deposit,
            ..
        } = self.job;
        let balance = match story {
            Story::Deposits => self.client.balance(act, account, Some(token)).await?,
            // The balance is the number of times that the job was done. Any client may read it.
            Story::Jobs => self.client.balance(Act::Unfenced, account, None).await?,
        };
        tell(&Step::Read { balance });
        if story == Story::Jobs && balance > 0 {
            tell(&Step::WasDone);
            return Ok(Pass::Done);
        }
        let balance = balance + deposit;
        take_time(&mut known).await;
        if !known.borrow().live() {
            return Ok(Pass::Again);
        }
        tell(&Step::Ready { balance });
        if self.orders.recv().await.is_none() {
            return Ok(Pass::Done);
        }
        // The check above and this write are two steps. Anything may happen between them.
        let answer = match story {
            Story::Deposits => self.client.write(act, account, balance, Some(token)).await,
            Story::Jobs => {
                let place = (account.as_str(), SLOT);
                self.client.run_job(act, place, deposit, token).await
            }
        }?;
        tell(&answer.clone().into());
        match answer {
            WriteAnswer::Accepted { .. } => Ok(Pass::Done),
            WriteAnswer::Refused { .. } => Ok(Pass::Again),
        }
    }
}

/// A computation that lasts until the lease has been renewed once, or is lost.
async fn take_time(known: &mut watch::Receiver<Knowledge>) {
    // The sender lives as long as this future: an error cannot happen and would end the wait.
    let _ended = known
        .wait_for(|known| known.renewals > 0 || known.lost)
        .await
        .is_err();
}
