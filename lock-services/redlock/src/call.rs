use redis::{
    Cmd, ErrorKind, RedisResult, Script, ServerErrorKind, ToRedisArgs, Value,
    aio::MultiplexedConnection,
};

/// A script with its keys and arguments, in the form in which it is sent. One call may be sent to
/// many nodes.
pub(super) struct Call {
    script: &'static Script,
    command: Cmd,
}

impl Call {
    pub(super) fn new<K: AsRef<str>>(script: &'static Script, keys: &[K]) -> Self {
        let mut command = redis::cmd("EVALSHA");
        command.arg(script.get_hash()).arg(keys.len());
        for key in keys {
            command.arg(key.as_ref());
        }
        Self { script, command }
    }

    pub(super) fn arg(mut self, argument: impl ToRedisArgs) -> Self {
        self.command.arg(argument);
        self
    }

    /// Sends the call once. A script that the server does not know is loaded first.
    ///
    /// # Cancel safety
    /// The call is sent when this future is first polled, unless the connection is full.
    pub(super) async fn send(&self, connection: &mut MultiplexedConnection) -> RedisResult<Value> {
        match run(connection, &self.command).await {
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.script.load_async(connection).await?;
                run(connection, &self.command).await
            }
            answer => answer,
        }
    }
}

async fn run(connection: &mut MultiplexedConnection, command: &Cmd) -> RedisResult<Value> {
    let answer = connection.send_packed_command(command).await;
    answer.and_then(Value::extract_error)
}
