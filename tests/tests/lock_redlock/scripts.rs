//! What one node does with a request that comes in late, or twice: each rule of the scripts by
//! itself. They are put together here as the backend does it.

use std::collections::BTreeMap;

use e2e::{project::files_in, servers::Redis};
use redis::{Client, Script, Value, aio::MultiplexedConnection};

const MARKER: &str = "t:node";
const COUNTER: &str = "t:counter:r";
const LEASE: &str = "t:lease:r";
const LIFE: &str = "1790000000000000-0123456789abcdef";

/// Holders are digests, nonces and attempts numbers; what matters is that they differ.
const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
const TRY: [&str; 3] = ["1111111111111111", "2222222222222222", "3333333333333333"];

/// One node in service, whose counters begin above 40.
struct Node {
    scripts: BTreeMap<String, String>,
    connection: MultiplexedConnection,
    _server: Redis,
}

impl Node {
    async fn new() -> Self {
        let server = Redis::start().await;
        let client = Client::open(server.url()).unwrap();
        let files = files_in("lock-core/src/backends/redlock/lua", "lua");
        let name = |path: &std::path::Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
        let node = Self {
            scripts: files
                .into_iter()
                .map(|file| (name(&file.path), file.text))
                .collect(),
            connection: client.get_multiplexed_async_connection().await.unwrap(),
            _server: server,
        };
        node.set(MARKER, &marker('s')).await;
        node
    }

    /// Runs a script. The words of its answer.
    async fn run(&self, name: &str, keys: &[&str], arguments: &[&str]) -> String {
        let text = &self.scripts[name];
        let (flags, body) = text.split_once('\n').unwrap();
        let first = body.lines().next().unwrap();
        let part = |part: &&str| first.contains(&format!("{part}.lua"));
        let parts = ["first_grant", "serving", "greater", "counts", "lease"]
            .into_iter()
            .filter(part);
        let shared: String = parts.map(|part| self.scripts[part].as_str()).collect();
        let code = format!("{flags}\n{shared}{body}")
            .replace("ENDED_MS", "15000")
            .replace("ENDED_TEXT", "'15000'")
            .replace("TOKEN_MAX", "'999999999999999'")
            .replace("EXACT_MAX", "999999999999999");
        let script = Script::new(&code);
        let mut invocation = script.prepare_invoke();
        for key in keys {
            invocation.key(*key);
        }
        for argument in arguments {
            invocation.arg(*argument);
        }
        let answer: Value = invocation
            .invoke_async(&mut self.connection.clone())
            .await
            .unwrap();
        match answer {
            Value::Array(words) => words.into_iter().map(word).collect::<Vec<_>>().join(" "),
            single => word(single),
        }
    }

    /// Asks for the lease: "granted COUNT LIFE" if it is granted.
    async fn acquire(&self, holder: &str, nonce: &str) -> String {
        let keys = [MARKER, COUNTER, LEASE, &ended(holder)];
        let tail = format!(":12:0:{nonce}:");
        let arguments = [holder, nonce, nonce, &tail, "40000", "20000"];
        self.run("acquire", &keys, &arguments).await
    }

    async fn raise(&self, life: &str, holder: &str, nonce: &str, count: &str, to: &str) -> String {
        let lease = format!("{holder}:{nonce}:");
        self.run(
            "raise",
            &[MARKER, COUNTER, LEASE],
            &[life, &lease, count, to],
        )
        .await
    }

    async fn undo(&self, holder: &str, nonce: &str) -> String {
        let keys = [MARKER, LEASE, &ended(holder)];
        self.run("undo", &keys, &[holder, nonce, nonce]).await
    }

    async fn seed(&self, life: &str, count: &str) -> String {
        self.run("seed", &[MARKER, COUNTER], &[life, count]).await
    }

    async fn counter(&self) -> Option<String> {
        self.command(&["GET", COUNTER]).await
    }

    async fn set(&self, key: &str, value: &str) {
        drop(self.command(&["SET", key, value]).await);
    }

    async fn delete(&self, key: &str) {
        drop(self.command(&["GETDEL", key]).await);
    }

    async fn command(&self, words: &[&str]) -> Option<String> {
        let mut connection = self.connection.clone();
        let mut command = redis::Cmd::new();
        let answer = command.arg(words).query_async(&mut connection).await;
        answer.unwrap()
    }
}

fn word(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes).unwrap(),
        Value::SimpleString(text) => text,
        other => panic!("numbers go out as text, and this is {other:?}"),
    }
}

fn ended(holder: &str) -> String {
    format!("t:ended:r:{holder}")
}

fn marker(state: char) -> String {
    // Taken in so long ago that it is not quiet any more.
    format!("{LIFE}:{state}:40:60000:run")
}

#[tokio::test]
async fn a_raise_is_let_through_only_if_lease_counter_and_life_are_those_of_the_grant() {
    let node = Node::new().await;
    assert_eq!(node.acquire(A, TRY[0]).await, format!("granted 41 {LIFE}"));
    assert_eq!(node.raise("1-1", A, TRY[0], "41", "50").await, "other_life");
    assert_eq!(node.raise(LIFE, A, TRY[1], "41", "50").await, "lost");
    assert_eq!(node.raise(LIFE, B, TRY[0], "41", "50").await, "lost");
    assert_eq!(node.raise(LIFE, A, TRY[0], "40", "50").await, "lost");
    assert_eq!(node.counter().await.as_deref(), Some("41"));
    assert_eq!(
        node.run("count", &[MARKER, COUNTER], &[]).await,
        "counted 42"
    );
    assert_eq!(node.raise(LIFE, A, TRY[0], "41", "50").await, "passed");
    assert_eq!(node.counter().await.as_deref(), Some("42"));
}

#[tokio::test]
async fn a_raise_lifts_the_counter_to_the_token_and_comes_in_once() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    assert_eq!(node.raise(LIFE, A, TRY[0], "41", "50").await, "raised");
    assert_eq!(node.counter().await.as_deref(), Some("50"));
    assert_eq!(node.raise(LIFE, A, TRY[0], "41", "60").await, "lost");
    assert_eq!(node.counter().await.as_deref(), Some("50"));
    let again = node.acquire(A, TRY[1]).await;
    assert!(again.starts_with("again 50 "), "{again}");
    let held = node.acquire(B, TRY[2]).await;
    assert!(
        held.starts_with("held ") && held.ends_with(TRY[0]),
        "{held}"
    );
}

#[tokio::test]
async fn counts_are_compared_as_text_and_exact_beyond_what_a_double_holds() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    // Neighbours that are one number to Lua.
    let [low, high] = ["9007199254740992", "9007199254740993"];
    let lease: String = node.command(&["GET", LEASE]).await.unwrap();
    node.set(LEASE, &lease.replace(":0:41:", &format!(":0:{low}:")))
        .await;
    node.set(COUNTER, high).await;
    assert_eq!(node.raise(LIFE, A, TRY[0], low, high).await, "passed");
    node.set(COUNTER, low).await;
    assert_eq!(node.raise(LIFE, A, TRY[0], low, high).await, "raised");
    assert_eq!(node.counter().await.as_deref(), Some(high));
    node.delete(LEASE).await;
    assert_eq!(node.acquire(B, TRY[1]).await, "exhausted");
}

#[tokio::test]
async fn an_acquire_that_comes_in_again_counts_up() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    assert_eq!(node.acquire(A, TRY[0]).await, format!("granted 42 {LIFE}"));
    assert_eq!(node.raise(LIFE, A, TRY[0], "41", "50").await, "lost");
}

#[tokio::test]
async fn an_undo_ends_no_lease_of_another_try_and_refuses_its_own_when_that_comes_late() {
    let node = Node::new().await;
    node.acquire(A, TRY[1]).await;
    assert_eq!(node.undo(A, TRY[0]).await, "undone");
    assert_eq!(node.raise(LIFE, A, TRY[1], "41", "41").await, "raised");
    assert_eq!(node.acquire(A, TRY[0]).await, "ended");
    assert_eq!(node.undo(A, TRY[1]).await, "undone");
    assert_eq!(node.command(&["GET", LEASE]).await, None);
}

#[tokio::test]
async fn a_seed_makes_a_counter_and_replaces_none_and_is_for_one_life() {
    let node = Node::new().await;
    assert_eq!(node.seed(LIFE, "90").await, "not_needed", "it serves");
    node.set(MARKER, &marker('h')).await;
    assert_eq!(node.acquire(A, TRY[0]).await, format!("to_heal {LIFE}"));
    let count = node.run("count", &[MARKER, COUNTER], &[]).await;
    assert_eq!(
        count,
        format!("to_heal {LIFE}"),
        "it knows nothing to heal others with"
    );
    assert_eq!(node.counter().await, None);
    assert_eq!(node.seed("1-1", "90").await, "other_life");
    assert_eq!(node.seed(LIFE, "90").await, "seeded");
    assert_eq!(node.acquire(A, TRY[0]).await, format!("granted 91 {LIFE}"));
    assert_eq!(node.seed(LIFE, "80").await, "not_needed");
    assert_eq!(node.counter().await.as_deref(), Some("91"));
}

#[tokio::test]
async fn a_node_that_does_not_serve_refuses_everything() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    for (marker, says) in [
        (None, "no_state".to_owned()),
        (Some(marker('r')), format!("not_serving {}", marker('r'))),
        (Some(marker('p')), format!("not_serving {}", marker('p'))),
    ] {
        match marker {
            Some(marker) => node.set(MARKER, &marker).await,
            None => node.delete(MARKER).await,
        }
        assert_eq!(node.acquire(B, TRY[1]).await, says);
        assert_eq!(node.raise(LIFE, A, TRY[0], "41", "50").await, says);
        assert_eq!(node.undo(A, TRY[0]).await, says);
        assert_eq!(node.seed(LIFE, "90").await, says);
        assert_eq!(node.run("count", &[MARKER, COUNTER], &[]).await, says);
    }
    assert_eq!(node.counter().await.as_deref(), Some("41"));
}

#[tokio::test]
async fn a_life_is_another_one_each_time_it_is_drawn() {
    let node = Node::new().await;
    let arguments = ["", "", TRY[0], ":p:0:0:run"];
    let draw = || node.run("mark", &[MARKER], &arguments);
    assert!(
        draw().await.starts_with("other "),
        "it was not what was seen"
    );
    node.delete(MARKER).await;
    let first = draw().await;
    assert!(first.starts_with("marked 1"), "{first}");
    node.delete(MARKER).await;
    assert_ne!(draw().await, first, "the same request, twice");
}
