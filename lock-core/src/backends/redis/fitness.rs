use redis::aio::MultiplexedConnection;
use tracing::warn;

use super::{KIND, error::translate};
use crate::{Error, ErrorKind, Operation};

/// The oldest major version whose scripts have flags.
const MAJOR_MIN: u32 = 7;

/// Refuses a server on which tokens would not rise, and warns of one that may forget.
///
/// Whoever may not ask (`INFO` denied by an ACL) is warned and goes on.
pub(super) async fn check(
    commands: &mut MultiplexedConnection,
    operation: Operation,
) -> Result<(), Error> {
    let info: String = match redis::cmd("INFO").query_async(commands).await {
        Ok(info) => info,
        Err(error) if error.code() == Some("NOPERM") => {
            warn!("INFO is denied: version, role and eviction of the server are not checked");
            return Ok(());
        }
        Err(error) => return Err(translate(error, operation).not_applied()),
    };
    if let Some(why) = unfit(&info) {
        return Err(Error::new(ErrorKind::Refused, operation, KIND).because(why));
    }
    if field(&info, "maxmemory_policy").is_some_and(|policy| policy.starts_with("volatile-")) {
        warn!(
            "the server may evict leases when memory is short: prefer maxmemory-policy noeviction"
        );
    }
    if field(&info, "aof_enabled") == Some("0") {
        warn!("the server forgets its tokens in a crash: tokens start over at its clock");
    }
    Ok(())
}

fn unfit(info: &str) -> Option<String> {
    let version = field(info, "redis_version").unwrap_or("");
    let major = version
        .split('.')
        .next()
        .and_then(|major| major.parse::<u32>().ok());
    if major.is_some_and(|major| major < MAJOR_MIN) {
        return Some(format!(
            "Redis {version} is too old, {MAJOR_MIN}.0 or newer is needed"
        ));
    }
    if field(info, "role").is_some_and(|role| role != "master") {
        return Some("this server is a replica: connect to its primary".to_owned());
    }
    let policy = field(info, "maxmemory_policy")?;
    policy.starts_with("allkeys-").then(|| {
        format!(
            "maxmemory-policy {policy} may evict a token counter, and tokens would repeat: \
             set it to noeviction",
        )
    })
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n";

    #[test]
    fn only_a_server_that_keeps_its_counters_is_fit() {
        assert_eq!(unfit(GOOD), None);
        for (from, to, says) in [
            ("7.0.15", "6.2.14", "too old"),
            ("role:master", "role:slave", "replica"),
            ("noeviction", "allkeys-lru", "noeviction"),
        ] {
            let why = unfit(&GOOD.replace(from, to)).unwrap();
            assert!(why.contains(says), "{why}");
        }
    }
}
