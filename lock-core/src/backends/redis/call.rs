use redis::{Arg, Cmd, ErrorKind, RedisError, RedisResult, ServerErrorKind, ToRedisArgs, Value};
use tracing::debug;

use super::{
    keys::Key,
    link::{Link, Request, breaks_connection},
    scripts::{LIBRARY, Script},
};

/// A script with its keys and arguments, written down as it goes out: as a function.
///
/// `redis::ScriptInvocation` keeps a vector for each of them and copies all of them into a command
/// for every request. With a dozen keys that was more than everything else a client had to do for
/// an acquire (decision 0012).
pub(super) struct Call {
    script: &'static Script,
    command: Cmd,
}

/// Room for what most calls have to say.
const ARGUMENTS: usize = 20;
const BYTES: usize = 768;

impl Call {
    pub(super) fn new<'a>(
        script: &'static Script,
        keys: impl IntoIterator<Item = Key<'a>, IntoIter: Clone>,
    ) -> Self {
        let keys = keys.into_iter();
        let mut command = Cmd::with_capacity(ARGUMENTS, BYTES);
        command.arg("FCALL").arg(script.function());
        command.arg(keys.clone().count());
        for key in keys {
            command.arg(key);
        }
        Self { script, command }
    }

    pub(super) fn arg(&mut self, argument: impl ToRedisArgs) -> &mut Self {
        self.command.arg(argument);
        self
    }

    /// Arguments of which one that is not there is empty, or left out if none comes after it.
    pub(super) fn rare_args<const N: usize>(&mut self, arguments: [Option<String>; N]) {
        let there = arguments.iter().rposition(Option::is_some);
        for argument in arguments.iter().take(there.map_or(0, |last| last + 1)) {
            self.command.arg(argument.as_deref().unwrap_or_default());
        }
    }
}

impl Call {
    /// As a script, for servers that have no functions, or do not let us.
    async fn send_script(&self, link: &mut Link) -> RedisResult<Value> {
        let script = self.script.by_itself();
        let mut command = Cmd::with_capacity(ARGUMENTS, BYTES);
        command.arg("EVALSHA").arg(script.get_hash());
        for argument in self.command.args_iter().skip(2) {
            if let Arg::Simple(argument) = argument {
                command.arg(argument);
            }
        }
        match link.run(&command).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                script.load_async(link).await?;
                link.run(&command).await
            }
            answer => answer,
        }
    }
}

impl Request for Call {
    async fn send(&self, link: &mut Link) -> RedisResult<Value> {
        if !link.takes_functions() {
            return self.send_script(link).await;
        }
        let denied = match link.run(&self.command).await {
            // Asked for the first time, or after a loss.
            Err(error) if says(&error, "function not found") => match load_library(link).await {
                Ok(()) => match link.run(&self.command).await {
                    // Deleted in this moment, or our library's name is taken by something else.
                    Err(error) if says(&error, "function not found") => error,
                    answer => return answer,
                },
                Err(error) if breaks_connection(&error) => return Err(error),
                Err(error) => error,
            },
            // It knows no such command, or this user may not send it.
            Err(error) if says(&error, "fcall") => error,
            answer => return answer,
        };
        debug!(error = %denied, "no functions on this connection: scripts are sent instead");
        link.send_no_functions();
        self.send_script(link).await
    }
}

async fn load_library(link: &mut Link) -> RedisResult<()> {
    let mut load = redis::cmd("FUNCTION");
    load.arg("LOAD").arg(LIBRARY.text());
    match link.run(&load).await {
        // Somebody else was faster.
        Err(error) if says(&error, "already exists") => Ok(()),
        answer => answer.map(drop),
    }
}

/// Servers write names of commands as they got them, or in small letters.
fn says(error: &RedisError, what: &str) -> bool {
    // Of an error behind `ASKING` nothing but the text is whole.
    error.to_string().to_lowercase().contains(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ResourceName,
        backends::redis::{keys::Keys, scripts::INSPECT},
    };

    fn written(rare: [Option<&str>; 3]) -> String {
        let (keys, resource) = (Keys::new("p", 1), ResourceName::new("r").unwrap());
        let mut call = Call::new(&INSPECT, [keys.of(&resource).lease()]);
        call.arg(34)
            .rare_args(rare.map(|text| text.map(str::to_owned)));
        let words = call
            .command
            .args_iter()
            .skip(2)
            .map(|argument| match argument {
                Arg::Simple(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
                _ => String::new(),
            });
        words.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn keys_are_counted_and_nothing_empty_is_at_the_end() {
        assert_eq!(written([None, None, None]), "1 p:{0}:lease:r 34");
        assert_eq!(written([None, Some("a"), None]), "1 p:{0}:lease:r 34  a");
    }
}
