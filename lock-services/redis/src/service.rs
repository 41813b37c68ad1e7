use std::sync::Arc;

use redis::Script;

use super::{
    answers::{ForcedWord, Inspected, Refusal, ReleasedWord, RenewedWord, parse_cancelled},
    call::Call,
    keys::{Key, Keys, ResourceKeys},
    lease_text,
    pushes::Message,
    scripts::{CANCEL, CONFIRM, FORCE_RELEASE, INSPECT, RELEASE},
    servers::{link::Link, nodes::Nodes},
};
use lock_core::{
    Error, ErrorKind, FencingToken, HolderView, InitialToken, Inspection, Metadata, Released,
    ResourceName, Sequencer, Ttl,
    backend::{AttemptId, AttemptRef, Forced, Runtime, repeat, support::Tasks},
};

/// The scripts as calls: each operation of a lock service on one resource, in one step.
#[derive(Debug)]
pub(super) struct Service {
    pub(super) nodes: Nodes,
    pub(super) keys: Keys,
    pub(super) initial: InitialToken,
    pub(super) runtime: Arc<dyn Runtime>,
    pub(super) tasks: Tasks,
}

/// The number of acquires that are under way at each server at once. Further acquires would have to
/// wait in the connection, while their response timeout already runs. With ten thousand waiters and
/// a server that is busy for a moment, all of them would be late, give the connection up, and ask
/// again. And a release would have to wait behind all of them.
pub(super) const ASKING_MAX: usize = 64;

/// The tombstone that a release leaves, so that a late request is granted nothing.
#[derive(Clone, Copy, Debug)]
pub(super) enum Tombstone {
    /// No tombstone, because no request of the acquisition can arrive later.
    None,
    /// The acquisition has ended.
    OfAcquisition,
    /// This attempt has given its hold back. The acquisition goes on.
    OfAttempt(AttemptId),
}

/// A grant to an attempt that does not wait any more.
#[derive(Debug)]
pub(super) struct Unwanted {
    /// The key of the lease.
    pub(super) lease: String,
    pub(super) digest: String,
    pub(super) attempt: AttemptId,
    /// The granted token.
    pub(super) token: FencingToken,
}

impl Service {
    /// The call of a script that may hand the resource on, with its keys and the first argument.
    pub(super) fn call(&self, script: &Script, keys: &ResourceKeys<'_>, link: &Link) -> Call {
        let given = [keys.counter(), keys.lease()];
        let mut call = Call::new(script, given.into_iter().chain(self.absent(keys)));
        self.say_where_counters_start(&mut call, keys.shard, link);
        call
    }

    /// The absent key that a script needs if it deletes keys where slots may move.
    pub(super) fn absent<'a>(&self, keys: &ResourceKeys<'a>) -> Option<Key<'a>> {
        (!self.nodes.shards_share_scripts()).then_some(keys.absent())
    }

    /// Adds the first argument of every script that draws tokens.
    pub(super) fn say_where_counters_start(&self, call: &mut Call, shard: u16, link: &Link) {
        match self.initial {
            InitialToken::Clock if link.must_raise(shard, self.runtime.now()) => call.arg("raise"),
            InitialToken::Clock => call.arg("clock"),
            InitialToken::At(token) => call.arg(token.get()),
        };
    }

    /// Makes a provisional lease full, or renews it, on one of these connections.
    pub(super) async fn confirm(
        &self,
        nodes: &Nodes,
        resource: &ResourceName,
        digest: &str,
        token: FencingToken,
        ttl: Ttl,
    ) -> Result<RenewedWord, Error> {
        let keys = self.keys.of(resource);
        let fill_in = |link: &Link| {
            let mut call = self.call(&CONFIRM, &keys, link);
            call.arg(digest).arg(token.get()).arg(ttl.as_millis());
            call
        };
        let parse = RenewedWord::parse;
        let answer = nodes.run_with(keys.shard, fill_in, parse).await;
        Ok(answer.map_err(|error| error.on(resource))?.1)
    }

    /// Ends a lease, or one hold of it. The answer may bring the grant of a waiter of the client.
    pub(super) async fn release(
        &self,
        lease: &Sequencer,
        shard: u16,
        tombstone: Tombstone,
        client: Option<&str>,
    ) -> Result<(Released, Option<Message>), Error> {
        let keys = self.keys.in_shard(shard, lease.resource());
        let ours = lease_text::full(lease);
        let tombstone = match tombstone {
            Tombstone::None => None,
            Tombstone::OfAcquisition => Some(String::new()),
            Tombstone::OfAttempt(attempt) => Some(attempt.to_string()),
        };
        let fill_in = |link: &Link| {
            let mut call = self.call(&RELEASE, &keys, link);
            call.arg(&ours)
                .rare_args([client.map(str::to_owned), tombstone.clone()]);
            call
        };
        loop {
            let sent = self.runtime.now();
            let answer = self
                .nodes
                .run_with(keys.shard, fill_in, ReleasedWord::parse)
                .await;
            let (link, word) = answer.map_err(|error| error.on(lease.resource()))?;
            match word {
                ReleasedWord::Released { raised, handed } => {
                    if raised {
                        link.has_raised(keys.shard, sent);
                    }
                    return Ok((Released::Released, handed));
                }
                ReleasedWord::NotHolder => return Ok((Released::NotHolder, None)),
                ReleasedWord::More => {}
            }
        }
    }

    /// Leaves a tombstone for an attempt, and gives back what it may have got.
    pub(super) async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let digest = attempt.holder.digest();
        self.cancel_by_digest(&attempt.resource, &digest, attempt.id, None)
            .await
    }

    /// Gives back a grant for an attempt that does not wait any more, unless the attempt has
    /// confirmed it.
    pub(super) async fn send_back(&self, grant: &Unwanted) -> Result<(), Error> {
        let Some(resource) = self.keys.resource_of(&grant.lease) else {
            return Ok(());
        };
        self.cancel_by_digest(&resource, &grant.digest, grant.attempt, Some(grant.token))
            .await
    }

    async fn cancel_by_digest(
        &self,
        resource: &ResourceName,
        digest: &str,
        attempt: AttemptId,
        unwanted: Option<FencingToken>,
    ) -> Result<(), Error> {
        let (keys, attempt) = (self.keys.of(resource), attempt.to_string());
        let fill_in = |link: &Link| {
            let mut call = self.call(&CANCEL, &keys, link);
            call.arg(digest)
                .arg(&attempt)
                .rare_args([unwanted.map(|token| token.to_string())]);
            call
        };
        loop {
            let answer = self
                .nodes
                .run_with(keys.shard, fill_in, parse_cancelled)
                .await;
            let (_, more) = answer.map_err(|error| error.on(resource))?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Ends a lease by force, and sends the request again if there is no answer.
    pub(super) async fn force_release(
        &self,
        resource: &ResourceName,
        token: FencingToken,
    ) -> Result<Forced, Error> {
        let keys = self.keys.of(resource);
        let fill_in = |link: &Link| {
            let mut call = self.call(&FORCE_RELEASE, &keys, link);
            call.arg(token.get());
            call
        };
        let force = || self.nodes.run_with(keys.shard, fill_in, ForcedWord::parse);
        let (_, answer) = repeat(&*self.runtime, force).await?;
        match answer {
            ForcedWord::Ended { revocation } => Ok(Forced::Ended { revocation }),
            ForcedWord::NotHeld => Ok(Forced::NotHeld),
            ForcedWord::Refused(refusal) => Err(refused(refusal).on(resource)),
        }
    }

    pub(super) async fn inspect(&self, resource: &ResourceName) -> Result<Inspection, Error> {
        let keys = self.keys.of(resource);
        let call = Call::new(&INSPECT, [keys.counter(), keys.lease()]);
        let inspected = self
            .nodes
            .run(keys.shard, &call, Inspected::parse)
            .await
            .map_err(|error| error.on(resource))?;
        match inspected {
            Inspected::Held {
                waiters,
                token,
                digest,
                left,
                metadata,
            } => {
                // Another program has written metadata that are not valid. The rest may be of use
                // nevertheless.
                let metadata = Metadata::new(metadata).ok();
                let metadata = metadata.filter(|metadata| !metadata.as_str().is_empty());
                let holder = HolderView::of_digest(&digest, token, left).metadata(metadata);
                Ok(Inspection::new(Some(holder)).waiters(waiters))
            }
            Inspected::Free { waiters } => Ok(Inspection::new(None).waiters(waiters)),
            Inspected::Broken => Err(refused(Refusal::BrokenLease).on(resource)),
        }
    }
}

/// The error for a refusal.
pub(super) fn refused(refusal: Refusal) -> Error {
    let error = |kind| Error::not_applied(kind);
    match refusal {
        Refusal::Ended => error(ErrorKind::Released),
        Refusal::Missing => error(ErrorKind::CounterBroken).because("it cannot be started"),
        Refusal::Implausible { greatest } => error(ErrorKind::FloorImplausible)
            .because(format!("at most {greatest} is plausible now")),
        Refusal::Exhausted => error(ErrorKind::TokensExhausted)
            .because("use another prefix, and hand the store over to it"),
        Refusal::BrokenCounter { why } => error(ErrorKind::CounterBroken).because(why),
        Refusal::BrokenLease => {
            error(ErrorKind::Refused).because("the key of the lease holds something else")
        }
    }
}
