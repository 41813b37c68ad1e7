//! Values in Redis that only the grant which the mark shows may change.

mod answer;
mod keys;
mod scripts;

use std::{fmt, time::Duration};

use lock_core::{InvalidName, ResourceName, Sequencer};
use redis::{Script, aio::ConnectionLike};

use self::{
    answer::{Answer, Sends, of_read, of_write, out_of_order, refusal},
    keys::{Keys, without_braces},
};
use crate::{
    FenceError, HighWater, Plausibility, Presented, Receipt, begin::Seq, counted,
    high_water::columns::undecodable,
};

/// Values in Redis, one per resource, that are written only by the grant which the mark shows.
///
/// Many users of a lock write not a row but a key, and this is for them. One script, on one server,
/// checks the mark and changes the value, so a stale holder's write is refused whenever it arrives.
/// The rule is that of [`FencedStore`](crate::FencedStore), with the same errors: [`claim`] once,
/// right after acquiring, then read and write. This is a store, not the lock service: the lock may
/// be kept in another Redis, or elsewhere.
///
/// A mark has no time to live. It outlives its value, even one that was deleted or has expired. No
/// single row says which lock service counts for all resources: each mark remembers its own.
///
/// If the grant is an `http::Fenced` whose request carried a number, the number counts as in
/// [`Begin::seq`](crate::Begin::seq): the write is made once, and a write with a smaller number
/// that arrives later is refused with [`FenceError::OutOfOrder`]. Reads and claims are not
/// numbered.
///
/// The connection is the application's own, of the `redis` crate: a `MultiplexedConnection`, a
/// `ConnectionManager` or a `ClusterConnection`. The keys of a resource share a slot, so a cluster
/// works, too. It needs Redis 7.0 or newer.
///
/// NOT guaranteed, and no script can change that: anything across an **unplanned failover**, or
/// across a restart that loses the end of the log. Redis answers before its replicas have a write,
/// so the successor may show an older mark, and then a stale holder is let in again until somebody
/// claims. Nothing is guaranteed with `allkeys-*` eviction, which evicts marks, or about commands
/// that do not come through here: whoever has the right to write to the keys can do so. If that is
/// not enough, write to a database.
///
/// [`claim`]: FencedRedis::claim
///
/// # Examples
/// ```no_run
/// # async fn f(
/// #     guard: lock_core::LeaseGuard, connection: redis::aio::MultiplexedConnection,
/// # ) -> Result<(), Box<dyn std::error::Error>> {
/// use fenced_store::FencedRedis;
///
/// let store = FencedRedis::new(connection);
/// store.claim(guard.sequencer()).await?; // every older holder is shut out from here on
/// let cart = store.get(guard.sequencer()).await?.unwrap_or_default();
/// let receipt = store.set(guard.sequencer(), [&cart[..], b",egg"].concat(), None).await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct FencedRedis<C> {
    connection: C,
    prefix: String,
    plausibility: Plausibility,
    sends: Sends,
}

/// The result of [`FencedRedis::swap`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "there is no third")]
#[must_use = "the value may have been another one, and then nothing was changed"]
pub enum Swap {
    /// The value was as expected, and is now the new one.
    Done(Receipt),
    /// The value is another one, or there is none. Nothing was changed.
    Found(Option<Vec<u8>>),
}

impl<C: ConnectionLike + Clone + Send + Sync> FencedRedis<C> {
    /// A store over the application's own connection. Keys begin with `fenced`.
    #[must_use]
    pub fn new(connection: C) -> Self {
        Self {
            connection,
            prefix: "fenced".to_owned(),
            plausibility: Plausibility::default(),
            sends: Sends::Again,
        }
    }

    /// Promises that the connection sends each request only once. A `MultiplexedConnection` and a
    /// `ConnectionManager` do, and so does a `ClusterConnection` whose number of retries is 0.
    ///
    /// A write that the server refuses, for lack of memory for example, then fails with an error
    /// that says so. Without this promise every error of a write is
    /// [`FenceError::CommitUnknown`]: an earlier attempt may have been executed and not answered.
    #[must_use]
    pub const fn sends_once(mut self) -> Self {
        self.sends = Sends::Once;
        self
    }

    /// Sets the key prefix, for stores that share a server. Braces are escaped.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = without_braces(prefix);
        self
    }

    /// The bound for tokens that are claimed, as
    /// [`FencedStore::plausibility`](crate::FencedStore::plausibility).
    #[must_use]
    pub fn plausibility(mut self, plausibility: Plausibility) -> Self {
        self.plausibility = plausibility;
        self
    }

    /// Raises the mark to this grant: from here on every older holder is shut out.
    ///
    /// # Errors
    /// As [`FencedStore::claim`](crate::FencedStore::claim); [`FenceError::CommitUnknown`] if no
    /// answer came: claim again.
    ///
    /// # Cancel safety
    /// The claim may have been made, or may be made later; claim again to know.
    pub async fn claim<'g>(
        &self,
        grant: impl Into<Presented<'g>> + Send,
    ) -> Result<(), FenceError> {
        let sequencer = grant.into().sequencer();
        self.plausibility.check(sequencer)?;
        let keys = self.keys(sequencer.resource());
        let answer = self
            .ask(&scripts::CLAIM, &[&keys.mark], sequencer, &[])
            .await;
        match answer.map_err(|error| of_write(error, self.sends))? {
            (word, _) if word == "claimed" => Ok(()),
            other => counted::refusal(Err(refusal(&other, sequencer))),
        }
    }

    /// Reads the mark of a resource; `None` if it was never claimed.
    ///
    /// # Errors
    /// If the server cannot be asked.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn high_water(
        &self,
        resource: &ResourceName,
    ) -> Result<Option<HighWater>, FenceError> {
        let mut read = redis::cmd("HMGET");
        read.arg(&self.keys(resource).mark)
            .arg("token")
            .arg("issuer");
        let mark: (Option<i64>, Option<String>) = read
            .query_async(&mut self.connection.clone())
            .await
            .map_err(of_read)?;
        match mark {
            (Some(token), Some(issuer)) => HighWater::from_columns((token, issuer)).map(Some),
            (None, None) => Ok(None),
            _ => Err(undecodable(std::io::Error::other("a mark is incomplete"))),
        }
    }

    /// Reads the value for this grant. It is current: what older holders have written is in it, and
    /// no older holder will write any more.
    ///
    /// # Errors
    /// Those of [`FencedStore::begin`](crate::FencedStore::begin), and if the server cannot be
    /// asked.
    ///
    /// # Cancel safety
    /// Cancel safe.
    pub async fn get<'g>(
        &self,
        grant: impl Into<Presented<'g>> + Send,
    ) -> Result<Option<Vec<u8>>, FenceError> {
        let sequencer = grant.into().sequencer();
        let keys = self.keys(sequencer.resource());
        let answer = self
            .ask(&scripts::READ, &[&keys.mark, &keys.value], sequencer, &[])
            .await;
        match answer.map_err(of_read)? {
            (word, value) if word == "value" => Ok(value),
            (word, _) if word == "none" => Ok(None),
            other => counted::refusal(Err(refusal(&other, sequencer))),
        }
    }

    /// Sets the value, with this time to live or without any. That of the former value is gone.
    ///
    /// Times count in whole milliseconds, rounded up, from 1 ms to a hundred years.
    ///
    /// # Errors
    /// Those of [`FencedStore::begin`](crate::FencedStore::begin): then the value is as it was.
    /// [`FenceError::CommitUnknown`] if no answer came, or an error that need not be that of the
    /// first attempt: see [`sends_once`](Self::sends_once). Then the value may still be set later,
    /// until a newer grant is claimed.
    ///
    /// A cluster connection resends a request whose answer was lost. So [`FenceError::Stale`] may
    /// be the answer to a second attempt, while the first one had set the value before the newer
    /// grant was claimed. Neither attempt sets it after that claim. In the same way, a numbered
    /// write may be answered with [`FenceError::OutOfOrder`] and its own number, although it was
    /// made.
    ///
    /// # Cancel safety
    /// Not cancel safe: the value may have been set, or may be set later.
    pub async fn set<'g>(
        &self,
        grant: impl Into<Presented<'g>> + Send,
        value: impl AsRef<[u8]> + Send,
        ttl: Option<Duration>,
    ) -> Result<Receipt, FenceError> {
        let change = Change::set(value.as_ref(), ttl);
        self.overwrite(grant.into(), change).await
    }

    /// Deletes the value. The mark stays.
    ///
    /// # Errors
    /// As [`set`](Self::set).
    ///
    /// # Cancel safety
    /// As [`set`](Self::set).
    pub async fn delete<'g>(
        &self,
        grant: impl Into<Presented<'g>> + Send,
    ) -> Result<Receipt, FenceError> {
        self.overwrite(grant.into(), Change::DELETE).await
    }

    /// Sets or deletes the value if it is the expected one: for a holder whose own tasks write
    /// concurrently. `None` stands for no value.
    ///
    /// A cluster connection resends requests by itself, so this may find its own new value.
    ///
    /// # Errors
    /// As [`set`](Self::set). A value other than the expected one is no error: see [`Swap`].
    ///
    /// # Cancel safety
    /// As [`set`](Self::set).
    pub async fn swap<'g>(
        &self,
        grant: impl Into<Presented<'g>> + Send,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
        ttl: Option<Duration>,
    ) -> Result<Swap, FenceError> {
        let expected = expected.map_or(["nothing".as_bytes(), b""], |value| [b"this", value]);
        let change = new.map_or(Change::DELETE, |value| Change::set(value, ttl));
        self.write(grant.into(), expected, change).await
    }

    /// The key of the value of a resource, for readers without a grant, who use a plain `GET`:
    /// their answer may be out of date when it arrives. Writes to this key are not fenced.
    ///
    /// # Errors
    /// [`InvalidName`] if there can be no such resource.
    pub fn value_key<N>(&self, resource: N) -> Result<String, InvalidName>
    where
        N: TryInto<ResourceName>,
        N::Error: Into<InvalidName>,
    {
        let resource = resource.try_into().map_err(Into::into)?;
        Ok(self.keys(&resource).value)
    }

    /// Whatever the value was.
    async fn overwrite(
        &self,
        grant: Presented<'_>,
        change: Change<'_>,
    ) -> Result<Receipt, FenceError> {
        let anything = ["anything".as_bytes(), b""];
        match self.write(grant, anything, change).await? {
            Swap::Done(receipt) => Ok(receipt),
            Swap::Found(_) => Err(undecodable(std::io::Error::other("nothing was expected"))),
        }
    }

    async fn write(
        &self,
        grant: Presented<'_>,
        expected: [&[u8]; 2],
        change: Change<'_>,
    ) -> Result<Swap, FenceError> {
        let sequencer = grant.sequencer();
        let seq = grant.seq().map(Seq::new).transpose()?.map_or(0, Seq::get);
        let number = seq.to_string();
        let keys = self.keys(sequencer.resource());
        let [what, value] = expected;
        let arguments = [
            what,
            value,
            change.verb,
            change.value,
            change.ttl_ms.as_bytes(),
            number.as_bytes(),
        ];
        let keys = [keys.mark.as_str(), &keys.value];
        let answer = self.ask(&scripts::WRITE, &keys, sequencer, &arguments);
        match answer.await.map_err(|error| of_write(error, self.sends))? {
            (word, _) if word == "written" => Ok(Swap::Done(Receipt::of_commit(sequencer, &[]))),
            (word, value) if word == "found" => Ok(Swap::Found(value)),
            (word, _) if word == "none" => Ok(Swap::Found(None)),
            (word, last) if word == "late" => {
                counted::refusal(Err(out_of_order(sequencer, seq, last.as_deref())))
            }
            other => counted::refusal(Err(refusal(&other, sequencer))),
        }
    }

    async fn ask(
        &self,
        script: &Script,
        keys: &[&str],
        sequencer: &Sequencer,
        more: &[&[u8]],
    ) -> redis::RedisResult<Answer> {
        let mut call = script.prepare_invoke();
        for key in keys {
            call.key(*key);
        }
        call.arg(sequencer.token().get())
            .arg(sequencer.holder().digest())
            .arg(sequencer.issuer().as_str());
        for argument in more {
            call.arg(*argument);
        }
        let words: Vec<Vec<u8>> = call.invoke_async(&mut self.connection.clone()).await?;
        let mut words = words.into_iter();
        let first = words.next().unwrap_or_default();
        Ok((String::from_utf8_lossy(&first).into_owned(), words.next()))
    }

    fn keys(&self, resource: &ResourceName) -> Keys {
        Keys::of(&self.prefix, resource)
    }
}

/// A change of a value.
struct Change<'a> {
    verb: &'static [u8],
    value: &'a [u8],
    ttl_ms: String,
}

impl<'a> Change<'a> {
    const DELETE: Self = Self {
        verb: b"delete",
        value: b"",
        ttl_ms: String::new(),
    };

    fn set(value: &'a [u8], ttl: Option<Duration>) -> Self {
        let millis = |ttl: Duration| ttl.as_nanos().div_ceil(1_000_000).clamp(1, MAX_TTL_MS);
        Self {
            verb: b"set",
            value,
            ttl_ms: ttl.map_or(0, millis).to_string(),
        }
    }
}

/// A hundred years: Redis refuses times beyond those that its clock can express.
const MAX_TTL_MS: u128 = 100 * 366 * 86_400_000;

impl<C> fmt::Debug for FencedRedis<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FencedRedis")
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
