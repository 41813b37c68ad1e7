use redis::{RedisResult, Role, aio::ConnectionLike};
use tracing::warn;

use super::service_url::Topology;
use crate::error::translate;
use lock_core::{Error, ErrorKind};

/// The oldest major version whose scripts have flags.
const MAJOR_MIN: u32 = 7;

/// Refuses a server on which tokens would not rise, and logs a warning about a server that may
/// forget them.
///
/// If an ACL denies `INFO`, the client logs a warning and goes on. Returns the server's answer to
/// `INFO`, or as much of it as the client may ask.
pub(crate) async fn check(
    link: &mut impl ConnectionLike,
    topology: Topology,
) -> Result<String, Error> {
    let info: String = match redis::cmd("INFO").query_async(link).await {
        Ok(info) => info,
        Err(error) if error.code() == Some("NOPERM") => {
            check_role(link, topology).await?;
            return Ok(String::new());
        }
        Err(error) => return Err(translate(error).outcome_not_applied()),
    };
    if field(&info, "role").is_some_and(|role| role != "master") {
        return Err(is_replica(topology));
    }
    if let Some(why) = unfit(&info, topology) {
        return Err(Error::not_applied(ErrorKind::Refused).because(why));
    }
    for worry in worries(&info, topology) {
        warn!("{worry}");
    }
    Ok(info)
}

/// The check that remains possible where `INFO` is denied.
async fn check_role(link: &mut impl ConnectionLike, topology: Topology) -> Result<(), Error> {
    warn!("INFO is denied: version, eviction and persistence of the server are not checked");
    let role: RedisResult<Role> = redis::cmd("ROLE").query_async(link).await;
    match role {
        Ok(Role::Primary { .. }) => Ok(()),
        Ok(_) => Err(is_replica(topology)),
        Err(error) if error.code() == Some("NOPERM") => {
            warn!("ROLE is denied too: whether the server is a primary is not checked");
            Ok(())
        }
        Err(error) => Err(translate(error).outcome_not_applied()),
    }
}

fn is_replica(topology: Topology) -> Error {
    // The replica may be promoted soon, or its name may soon lead to another server.
    Error::not_applied(ErrorKind::Unavailable).because(match topology {
        Topology::Sentinel | Topology::Cluster => {
            "the server that should be the primary is still a replica"
        }
        _ => "this server is a replica: connect to its primary, unless it is promoted soon",
    })
}

fn unfit(info: &str, topology: Topology) -> Option<String> {
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
    match (topology, field(info, "cluster_enabled")) {
        (Topology::Cluster, Some("0")) => {
            return Some("this server is not part of a cluster: use redis://".to_owned());
        }
        (Topology::Cluster, _) | (_, None | Some("0")) => {}
        (_, Some(_)) => {
            return Some("this server is a node of a cluster: use redis+cluster://".to_owned());
        }
    }
    let policy = field(info, "maxmemory_policy")?;
    policy.starts_with("allkeys-").then(|| {
        format!(
            "maxmemory-policy {policy} may evict a token counter, and tokens would repeat: \
             set it to noeviction",
        )
    })
}

/// Warnings about settings that are not wrong, but that can lose tokens or leases.
fn worries<'a>(info: &str, topology: Topology) -> impl Iterator<Item = &'a str> {
    let evicts =
        field(info, "maxmemory_policy").is_some_and(|policy| policy.starts_with("volatile-"));
    let has_successors = matches!(topology, Topology::Sentinel | Topology::Cluster);
    // An independent server among several is taken out of service after a crash, so its tokens do
    // not start over.
    let starts_over = has_successors || topology == Topology::Standalone;
    let forgets = starts_over && field(info, "aof_enabled") == Some("0");
    // The server shows the number of its good replicas only if it needs some.
    let writes_alone = has_successors && field(info, "min_slaves_good_slaves").is_none();
    [
        evicts.then_some(
            "the server may evict leases when memory is short: prefer maxmemory-policy noeviction",
        ),
        forgets.then_some(
            "the server forgets its tokens in a crash, and they start over at its clock: set \
             appendonly to yes",
        ),
        writes_alone.then_some(
            "a primary that was cut off goes on granting while its successor grants: set \
             min-replicas-to-write to 1",
        ),
    ]
    .into_iter()
    .flatten()
}

/// A field of an answer to `INFO`.
#[must_use]
pub fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "redis_version:7.0.15\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n\
                        aof_enabled:1\r\ncluster_enabled:0\r\n";

    /// Catches: a server that is too old is accepted, or counters may be lost without a warning.
    #[test]
    fn a_server_that_may_forget_counters_is_refused_or_warned_of() {
        assert_eq!(unfit(GOOD, Topology::Standalone), None);
        for (from, to, says) in [
            ("7.0.15", "6.2.14", "too old"),
            ("noeviction", "allkeys-lru", "noeviction"),
        ] {
            let why = unfit(&GOOD.replace(from, to), Topology::Standalone).unwrap();
            assert!(why.contains(says), "{why}");
        }
        let guarded = format!("{GOOD}min_slaves_good_slaves:1\r\n");
        for (info, topology, count) in [
            (GOOD, Topology::Standalone, 0),
            (
                &GOOD.replace("aof_enabled:1", "aof_enabled:0"),
                Topology::Standalone,
                1,
            ),
            (
                &GOOD.replace("noeviction", "volatile-ttl"),
                Topology::Standalone,
                1,
            ),
            (GOOD, Topology::Sentinel, 1),
            (&guarded, Topology::Sentinel, 0),
        ] {
            assert_eq!(worries(info, topology).count(), count, "{info}");
        }
    }
}
