use std::{borrow::Borrow, fmt, sync::Arc};

use redis::{Client, RedisResult, ScriptInvocation, Value};
use url::Url;

use super::{
    RedisOptions,
    connection::{Connection, Link, client},
    error::translate,
    layout::Layout,
};
use crate::{Error, Operation};

/// The servers of a lock service, and which of them has a shard. Cheap to clone.
#[derive(Clone)]
pub(super) struct Nodes {
    client: Client,
    connection: Arc<Connection>,
}

impl Nodes {
    /// Connects, and agrees with the other clients on the layout of keys.
    pub(super) async fn open(
        url: &Url,
        options: &RedisOptions,
        layout: Layout,
    ) -> Result<Self, Error> {
        let client = client(url, options).map_err(|error| translate(error, Operation::Connect))?;
        let connection = Connection::open(client.clone(), options, layout).await?;
        Ok(Self {
            client,
            connection: Arc::new(connection),
        })
    }

    /// Runs a script on the server that has the shard, and reads its answer. All keys of the script
    /// have to be of that shard.
    ///
    /// It is sent again if the server says that it did not run it, as when the shard has moved to
    /// another one, and never if its outcome is unknown.
    pub(super) async fn run<T>(
        &self,
        shard: u16,
        operation: Operation,
        script: &ScriptInvocation<'_>,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> Result<T, Error> {
        let (_, answer) = self.run_with(shard, operation, |_| script, parse).await?;
        Ok(answer)
    }

    /// As [`run`](Self::run), with a script that is filled in for the connection that it goes out
    /// on. Returns that connection with the answer.
    pub(super) async fn run_with<'s, T, S: Borrow<ScriptInvocation<'s>>>(
        &self,
        shard: u16,
        operation: Operation,
        script: impl Fn(&Link) -> S,
        parse: impl FnOnce(Value) -> RedisResult<T>,
    ) -> Result<(Link, T), Error> {
        let link = self.link(shard, operation).await?;
        let script = script(&link);
        match self.connection.run(&link, script.borrow(), parse).await {
            Ok(answer) => Ok((link, answer)),
            Err(error) => Err(translate(error, operation)),
        }
    }

    /// The present connection to the server that has the shard, or a new one. If it fails, nothing
    /// of the operation was sent.
    pub(super) async fn link(&self, _shard: u16, operation: Operation) -> Result<Link, Error> {
        self.connection.link(operation).await
    }

    /// Whether the keys of one script may be of several shards.
    pub(super) const fn shards_share_scripts(&self) -> bool {
        true
    }

    /// Compares the layout of keys again.
    pub(super) async fn agree(&self, operation: Operation) -> Result<(), Error> {
        self.connection.agree(operation).await
    }

    /// How to reach the server that has the shard now, for a connection of one's own.
    pub(super) async fn locate(&self, _shard: u16) -> Result<Client, Error> {
        Ok(self.client.clone())
    }
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Not the client: it may show a password.
        f.debug_struct("Nodes")
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}
