use redis::{Cmd, ErrorKind, RedisResult, Script, ServerErrorKind, ToRedisArgs, Value};

use super::{
    keys::Key,
    scripts::ALL,
    servers::link::{Link, Request},
};

/// A script with its keys and arguments, in the form in which it is sent.
///
/// `redis::ScriptInvocation` keeps a vector for each key and argument, and copies all of them into
/// a command for every request. With a dozen keys this was more work than everything else that a
/// client did for an acquire (decision 0012).
pub(super) struct Call {
    command: Cmd,
}

/// The room for arguments that is enough for most calls.
const ARGUMENTS: usize = 20;
const BYTES: usize = 768;

impl Call {
    pub(super) fn new<'a>(
        script: &Script,
        keys: impl IntoIterator<Item = Key<'a>, IntoIter: Clone>,
    ) -> Self {
        let keys = keys.into_iter();
        let mut command = Cmd::with_capacity(ARGUMENTS, BYTES);
        command.arg("EVALSHA").arg(script.get_hash());
        command.arg(keys.clone().count());
        for key in keys {
            command.arg(key);
        }
        Self { command }
    }

    pub(super) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Adds optional arguments. A missing one is sent as an empty text, or left out if no further
    /// one follows.
    pub(super) fn rare_args<const N: usize>(&mut self, arguments: [Option<String>; N]) {
        let there = arguments.iter().rposition(Option::is_some);
        for argument in arguments.iter().take(there.map_or(0, |last| last + 1)) {
            self.command.arg(argument.as_deref().unwrap_or_default());
        }
    }
}

impl Request for Call {
    async fn send(&self, link: &mut Link) -> RedisResult<Value> {
        match link.run(&self.command).await {
            // The server is asked for the first time, or has lost its scripts.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                load_all(link).await?;
                link.run(&self.command).await
            }
            answer => answer,
        }
    }
}

/// Loads all scripts in one round trip, because a waiter with a pushed lease has to confirm it
/// soon.
async fn load_all(link: &mut Link) -> RedisResult<()> {
    let mut loads = redis::pipe();
    for script in ALL {
        loads.load_script(script).ignore();
    }
    loads.exec_async(link).await
}
