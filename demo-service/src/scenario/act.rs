use std::time::{Duration, Instant};

use lock_core::ResourceName;
use tokio::sync::Notify;

use super::{Hand, client_process::ClientProcess};
use crate::{
    cli::{WorkerArgs, millis},
    client::{ClientError, GatewayClient},
    events::{Act, ClientName, Recorder, What},
    failure::Failure,
    gateway::account_resource,
    worker::Step,
};

const OPENING_BALANCE: i64 = 100;
const DEPOSIT_OF_CLIENT_1: i64 = 10;
const DEPOSIT_OF_CLIENT_2: i64 = 50;

/// How long a client may take for a step, beyond three leases.
const PATIENCE: Duration = Duration::from_secs(150);

/// What all acts have in common.
#[derive(Debug)]
pub(crate) struct Director {
    pub(crate) gateway: String,
    pub(crate) client: GatewayClient,
    pub(crate) recorder: Recorder,
    pub(crate) ttl: Duration,
    /// Makes the accounts of this scenario different from those of any other on the same servers.
    pub(crate) nonce: u64,
}

/// One act of one run. Both acts take the same steps; only the endpoint differs.
#[derive(Debug)]
struct Scene<'a> {
    director: &'a Director,
    act: Act,
    account: String,
    resource: ResourceName,
    /// The opening balance and every deposit that was acknowledged.
    acknowledged: i64,
}

impl Director {
    /// Plays one act and takes down its verdict.
    ///
    /// # Errors
    /// If it cannot be played to its end. That it did not go as told is no error here.
    pub(crate) async fn play(&self, run: u32, act: Act, hand: Hand) -> Result<(), Failure> {
        let account = format!("{:016x}-{run}-{act}", self.nonce);
        let resource = account_resource(&account)
            .try_into()
            .map_err(|error| Failure::NotAsTold(format!("{error}")))?;
        let opened = self
            .client
            .write(Act::Unfenced, &account, OPENING_BALANCE, None)
            .await;
        opened.map_err(|error| lost("cannot open an account", &error))?;
        self.recorder
            .stage(ResourceName::clone(&resource), run, act);

        let acknowledged = OPENING_BALANCE;
        Scene {
            director: self,
            act,
            account,
            resource,
            acknowledged,
        }
        .play(hand)
        .await
    }
}

impl Scene<'_> {
    async fn play(mut self, mut hand: Hand) -> Result<(), Failure> {
        let mut one = self.start(ClientName::One, DEPOSIT_OF_CLIENT_1)?;
        one.until(ready).await?;
        hand.pauses().await;
        let stopped = self.pause(&one).await?;

        // It does not hear that yet.
        one.go().await?;
        // Its request waits in the lock service until the lease of the stopped client has ended.
        let mut two = self.start(ClientName::Two, DEPOSIT_OF_CLIENT_2)?;
        let ended = Notify::new();
        let second = async {
            two.until(ready).await?;
            two.go().await?;
            let answer = two.until(answer).await?;
            two.finish().await?;
            ended.notify_one();
            Ok(answer)
        };
        let first = async {
            hand.resumes(stopped, ended.notified()).await;
            self.resume(&one, stopped)?;
            one.until(answer).await
        };
        let (second, first) = tokio::try_join!(second, first)?;
        let second_as_told = self.acknowledge(second, DEPOSIT_OF_CLIENT_2);
        let accepted = self.acknowledge(first.clone(), DEPOSIT_OF_CLIENT_1);
        let inert = accepted || self.balance().await? == self.acknowledged;
        if !accepted {
            // A refusal is no dead end: a fresh lease, a fresh read, and the deposit arrives.
            one.until(ready).await?;
            one.go().await?;
            self.acknowledge(one.until(answer).await?, DEPOSIT_OF_CLIENT_1);
        }
        one.finish().await?;

        let found = self.balance().await?;
        let lost_update = found != self.acknowledged;
        let as_told = second_as_told
            && match self.act {
                _ if !hand.is_told() => self.act == Act::Unfenced || !lost_update,
                Act::Unfenced => accepted && lost_update,
                Act::Fenced => is_stale(&first) && inert && !lost_update,
            };
        let expected = self.acknowledged;
        self.note(
            None,
            What::Verdict {
                expected,
                found,
                lost_update,
                as_told,
            },
        );
        Ok(())
    }

    fn start(&self, client: ClientName, deposit: i64) -> Result<ClientProcess, Failure> {
        let &Director {
            ref gateway, ttl, ..
        } = self.director;
        let args = WorkerArgs {
            gateway: gateway.clone(),
            client,
            act: self.act,
            account: self.account.clone(),
            deposit,
            ttl,
        };
        // Far more than any step takes: it only keeps a scenario gone wrong from waiting for ever.
        ClientProcess::start(&args, ttl * 3 + PATIENCE)
    }

    async fn pause(&self, one: &ClientProcess) -> Result<Instant, Failure> {
        one.stop().await?;
        self.note(Some(ClientName::One), What::Paused { pid: one.id() });
        Ok(Instant::now())
    }

    fn resume(&self, one: &ClientProcess, stopped: Instant) -> Result<(), Failure> {
        let paused_ms = millis(stopped.elapsed());
        // Taken down first: what the client does next must come after it.
        self.note(
            Some(ClientName::One),
            What::Resumed {
                pid: one.id(),
                paused_ms,
            },
        );
        one.resume()
    }

    /// Whether the deposit was acknowledged by the endpoint that this act is about.
    fn acknowledge(&mut self, answer: Step, deposit: i64) -> bool {
        let accepted = match answer {
            Step::Written { fenced, .. } => fenced || self.act == Act::Unfenced,
            _ => false,
        };
        self.acknowledged += if accepted { deposit } else { 0 };
        accepted
    }

    async fn balance(&self) -> Result<i64, Failure> {
        let read = self
            .director
            .client
            .balance(Act::Unfenced, &self.account, None)
            .await;
        read.map_err(|error| lost("cannot read the balance", &error))
    }

    fn note(&self, client: Option<ClientName>, what: What) {
        self.director.recorder.note(&self.resource, client, what);
    }
}

fn ready(step: Step) -> Option<()> {
    matches!(step, Step::Ready { .. }).then_some(())
}

fn answer(step: Step) -> Option<Step> {
    matches!(step, Step::Written { .. } | Step::Refused { .. }).then_some(step)
}

fn is_stale(step: &Step) -> bool {
    matches!(step, Step::Refused { status: 412, problem } if problem.ends_with("token-stale"))
}

fn lost(doing: &str, error: &ClientError) -> Failure {
    let text = format!("{doing}: {error}");
    match error.server_lost() {
        true => Failure::ServerLost(text),
        false => Failure::NotAsTold(text),
    }
}
