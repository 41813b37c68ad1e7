//! The commands that clients have sent to a server, by its own count.

use redis::{RedisResult, aio::MultiplexedConnection};

/// Commands that scripts cannot call, so each of them was sent by a client.
const OF_CLIENTS: [&str; 7] = [
    "eval",
    "evalsha",
    "subscribe",
    "unsubscribe",
    "ssubscribe",
    "sunsubscribe",
    "blpop",
];

/// How many commands clients have sent to lock, to release and to be woken.
pub(super) async fn sent(connection: &mut MultiplexedConnection) -> RedisResult<u64> {
    let info = commandstats(connection).await?;
    Ok(OF_CLIENTS.iter().map(|name| calls(&info, name)).sum())
}

/// How often one command was called, by clients and scripts.
pub(super) async fn called(connection: &mut MultiplexedConnection, name: &str) -> RedisResult<u64> {
    Ok(calls(&commandstats(connection).await?, name))
}

async fn commandstats(connection: &mut MultiplexedConnection) -> RedisResult<String> {
    redis::cmd("INFO")
        .arg("commandstats")
        .query_async(connection)
        .await
}

/// `cmdstat_evalsha:calls=12,usec=345,..`
fn calls(info: &str, name: &str) -> u64 {
    info.lines()
        .find_map(|line| {
            let line = line.strip_prefix("cmdstat_")?.strip_prefix(name)?;
            line.strip_prefix(":calls=")?
                .split(',')
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_of_exactly_that_command() {
        let info =
            "# Commandstats\r\ncmdstat_evalsha:calls=12,usec=9\r\ncmdstat_eval:calls=3,usec=1";
        assert_eq!(calls(info, "eval"), 3);
        assert_eq!(calls(info, "evalsha"), 12);
        assert_eq!(calls(info, "blpop"), 0);
    }
}
