//! What the lock service has a server do is a library of functions there, or scripts where it may
//! not be.

use e2e::servers::{Redis, RedisCluster, RedisWithSentinels};
use lock_core::{ErrorKind, FencingToken, LockManager};

#[tokio::test]
async fn a_server_is_told_the_functions_once_and_again_after_it_lost_them() {
    let server = Redis::start().await;
    let locks = LockManager::connect(server.url()).await.unwrap();
    let mut tokens = vec![turn(&locks).await, turn(&locks).await];
    let other = LockManager::connect(server.url()).await.unwrap();
    tokens.push(turn(&other).await);
    assert_eq!(calls(&server, "function|load").await, 1);

    let held = locks.acquire("held").await.unwrap();
    let () = server.command(&["FUNCTION", "FLUSH"]).await;
    held.release().await.unwrap();
    tokens.push(turn(&locks).await);
    assert_eq!(calls(&server, "function|load").await, 2);
    assert!(
        calls(&server, "fcall").await > 8,
        "they were not called after all"
    );
    assert_eq!(calls(&server, "evalsha").await, 0);

    server.restart_empty().await;
    tokens.push(turn(&locks).await);
    assert_eq!(calls(&server, "function|load").await, 1);
    assert_eq!(calls(&server, "evalsha").await, 0);
    assert!(tokens.is_sorted_by(|earlier, later| earlier < later));
}

/// Those of a version before are still called by clients of it.
#[tokio::test]
async fn libraries_of_other_versions_stay() {
    let server = Redis::start().await;
    let older = "#!lua name=palisade_0123456789abcdef\n\
                 redis.register_function('palisade_acquire_0123456789abcdef', \
                 function() return 'older' end)";
    let loaded: String = server.command(&["FUNCTION", "LOAD", older]).await;
    assert_eq!(loaded, "palisade_0123456789abcdef");
    turn(&LockManager::connect(server.url()).await.unwrap()).await;
    assert_eq!(libraries(&server).await, 2);
    let answer: String = server
        .command(&["FCALL", "palisade_acquire_0123456789abcdef", "0"])
        .await;
    assert_eq!(answer, "older");
}

#[tokio::test]
async fn scripts_are_sent_where_functions_are_denied_or_unknown() {
    for denied in ["-fcall", "-function|load", "-fcall -function|load"] {
        let server = Redis::start().await;
        let url = server.allow_documented(denied).await;
        let locks = LockManager::connect(&url).await.unwrap();
        let first = turn(&locks).await;
        assert!(turn(&locks).await > first);
        assert_eq!(libraries(&server).await, 0, "{denied}");
        let sent = calls(&server, "evalsha").await;
        assert!(sent >= 4, "{sent} with {denied}");
        // What is denied is asked for once on each connection.
        let asked = calls(&server, "fcall").await + refusals(&server, "fcall").await;
        assert_eq!(asked, 1, "{denied}");
    }
    let unknown = ["--rename-command", "FCALL", ""];
    let server = Redis::start_with(&unknown).await;
    turn(&LockManager::connect(server.url()).await.unwrap()).await;
    assert!(calls(&server, "evalsha").await >= 2);
}

/// Whoever may load libraries can take the name of ours.
#[tokio::test]
async fn scripts_are_sent_where_something_else_has_the_name_of_the_library() {
    let server = Redis::start().await;
    turn(&LockManager::connect(server.url()).await.unwrap()).await;
    let listed: Vec<redis::Value> = server.command(&["FUNCTION", "LIST"]).await;
    let name = format!("{listed:?}");
    let name = name.split('"').find(|word| word.starts_with("palisade_"));
    let () = server.command(&["FUNCTION", "FLUSH"]).await;
    let squatter = format!(
        "#!lua name={}\nredis.register_function('squatter', function() return 1 end)",
        name.unwrap().trim_end_matches('\'')
    );
    let loaded: String = server.command(&["FUNCTION", "LOAD", &squatter]).await;
    assert!(squatter.contains(&loaded));
    turn(&LockManager::connect(server.url()).await.unwrap()).await;
    assert!(calls(&server, "evalsha").await >= 2);
}

/// A server that is out of memory takes no functions. What is held can be given back all the same.
#[tokio::test]
async fn a_server_without_memory_for_the_functions_releases_by_script() {
    let server = Redis::start().await;
    let locks = LockManager::connect(server.url()).await.unwrap();
    let held = locks.acquire("r").await.unwrap();
    let () = server.command(&["FUNCTION", "FLUSH"]).await;
    let () = server.command(&["CONFIG", "SET", "maxmemory", "1"]).await;
    let error = locks.try_acquire("other").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    held.release().await.unwrap();
    assert_eq!(libraries(&server).await, 0);
    let () = server.command(&["CONFIG", "SET", "maxmemory", "0"]).await;
    turn(&locks).await;
}

/// Replicas have them, and every node of a cluster that is asked for something.
#[tokio::test]
async fn successors_have_the_functions() {
    let sentinel = RedisWithSentinels::start().await;
    let locks = LockManager::connect(&sentinel.url()).await.unwrap();
    let before = turn(&locks).await;
    sentinel.servers().until_in_step().await;
    sentinel.fail_over_as_planned().await;
    let successor = sentinel.primary().await;
    assert_eq!(libraries(successor).await, 1);
    assert!(turn(&locks).await > before);
    assert_eq!(calls(successor, "evalsha").await, 0);

    let cluster = RedisCluster::start().await;
    let locks = LockManager::connect(&cluster.url()).await.unwrap();
    for number in 0..30 {
        let guard = locks.acquire(format!("r:{number}")).await.unwrap();
        guard.release().await.unwrap();
    }
    for node in cluster.primaries() {
        assert_eq!(libraries(node).await, 1);
    }
}

async fn turn(locks: &LockManager) -> FencingToken {
    let guard = locks.acquire("r").await.unwrap();
    let token = guard.token();
    guard.release().await.unwrap();
    token
}

/// How many libraries of functions there are.
async fn libraries(server: &Redis) -> usize {
    let listed: Vec<redis::Value> = server.command(&["FUNCTION", "LIST"]).await;
    listed.len()
}

/// How often the server has run a command.
async fn calls(server: &Redis, command: &str) -> u64 {
    count(server, command, "calls").await
}

/// How often it has refused to.
async fn refusals(server: &Redis, command: &str) -> u64 {
    count(server, command, "rejected_calls").await
}

/// From `cmdstat_fcall:calls=1,usec=2,..,rejected_calls=0,..`
async fn count(server: &Redis, command: &str, what: &str) -> u64 {
    let info: String = server.command(&["INFO", "commandstats"]).await;
    let counted = info.lines().find_map(|line| {
        let counts = line.strip_prefix("cmdstat_")?.strip_prefix(command)?;
        let mut counts = counts.strip_prefix(':')?.split(',');
        counts.find_map(|count| count.strip_prefix(what)?.strip_prefix('=')?.parse().ok())
    });
    counted.unwrap_or(0)
}
