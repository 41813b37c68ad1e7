use std::time::{Duration, Instant};

use lock_core::ResourceName;

use super::client_process::ClientProcess;
use crate::{
    client::{ClientError, GatewayClient},
    events::{Act, ClientName, Recorder, Story, What},
    worker::{Job, Step},
};
use palisade_cli::Failure;
use palisade_gateway::wire::millis;

pub(super) const DEPOSIT_OF_CLIENT_1: i64 = 10;
pub(super) const DEPOSIT_OF_CLIENT_2: i64 = 50;

/// The time that a client may take for a step, in addition to three leases.
const PATIENCE: Duration = Duration::from_secs(150);

/// The director: the state that all acts share.
#[derive(Debug)]
pub(crate) struct Director {
    pub(crate) gateway: String,
    pub(crate) client: GatewayClient,
    pub(crate) recorder: Recorder,
    pub(crate) ttl: Duration,
    pub(crate) story: Story,
    /// Makes the accounts of this scenario different from those of any other on the same servers.
    pub(crate) nonce: u64,
}

/// One act of one run. Both acts take the same steps; only the endpoint differs.
#[derive(Debug)]
pub(super) struct Scene<'a> {
    pub(super) director: &'a Director,
    pub(super) act: Act,
    pub(super) account: String,
    pub(super) resource: ResourceName,
    /// The opening balance and every deposit that was acknowledged.
    pub(super) acknowledged: i64,
}

impl Scene<'_> {
    pub(super) fn start(&self, client: ClientName) -> Result<ClientProcess, Failure> {
        let &Director {
            ref gateway, ttl, ..
        } = self.director;
        let story = self.director.story;
        let deposit = match (story, client) {
            (Story::Jobs, _) => 1,
            (Story::Deposits, ClientName::One) => DEPOSIT_OF_CLIENT_1,
            (Story::Deposits, ClientName::Two) => DEPOSIT_OF_CLIENT_2,
        };
        let job = Job {
            gateway: gateway.clone(),
            client,
            act: self.act,
            story,
            account: self.account.clone(),
            deposit,
            ttl,
        };
        // This is far more than any step takes. It only prevents that a broken scenario waits for
        // ever.
        ClientProcess::start(&job, ttl * 3 + PATIENCE)
    }

    pub(super) async fn pause(&self, one: &ClientProcess) -> Result<Instant, Failure> {
        one.stop().await?;
        self.note(Some(ClientName::One), What::Paused { pid: one.id() });
        Ok(Instant::now())
    }

    pub(super) fn resume(&self, one: &ClientProcess, stopped: Instant) -> Result<(), Failure> {
        let paused_ms = millis(stopped.elapsed());
        // This is recorded first, because the next actions of the client must come after it.
        self.note(
            Some(ClientName::One),
            What::Resumed {
                pid: one.id(),
                paused_ms,
            },
        );
        one.resume()
    }

    pub(super) async fn kill(&self, one: ClientProcess) -> Result<(), Failure> {
        let pid = one.id();
        one.kill().await?;
        self.note(Some(ClientName::One), What::Killed { pid });
        Ok(())
    }

    /// Whether the deposit was acknowledged by the endpoint of this act.
    pub(super) fn acknowledge(&mut self, answer: &Step, deposit: i64) -> bool {
        let accepted = match answer {
            Step::Written { fenced, .. } => *fenced || self.act == Act::Unfenced,
            _ => false,
        };
        if accepted {
            self.acknowledged = match self.director.story {
                Story::Deposits => self.acknowledged + deposit,
                // The job should be done once, whatever the number of clients is that report it as
                // done.
                Story::Jobs => 1,
            };
        }
        accepted
    }

    pub(super) async fn balance(&self) -> Result<i64, Failure> {
        let read = self
            .director
            .client
            .balance(Act::Unfenced, &self.account, None)
            .await;
        read.map_err(|error| lost("cannot read the balance", &error))
    }

    pub(super) fn note(&self, client: Option<ClientName>, what: What) {
        self.director.recorder.note(&self.resource, client, what);
    }
}

pub(super) fn lost(doing: &str, error: &ClientError) -> Failure {
    let text = format!("{doing}: {error}");
    match error.server_lost() {
        true => Failure::ServerLost(text),
        false => Failure::NotAsTold(text),
    }
}
