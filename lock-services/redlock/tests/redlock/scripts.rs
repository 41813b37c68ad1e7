//! One node gets a request late, or twice: each rule of the scripts by itself. The scripts are put
//! together here as the backend does it.

use std::collections::BTreeMap;

use e2e::{project::files_in, servers::Redis};
use lock_core::backend::{Runtime, TokioRuntime};
use redis::{Client, Script, Value, aio::MultiplexedConnection};

const MARKER: &str = "t:node";
const COUNTER: &str = "t:counter:r";
const LEASE: &str = "t:lease:r";
const LIFE: &str = "1790000000000000-0123456789abcdef";

/// A holder. Holders are digests, and nonces and attempts are numbers. They only have to differ.
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
        let files = files_in("lock-services/redlock/src/lua", "lua");
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

    /// Runs a script. Returns the words of its answer.
    async fn run(&self, name: &str, keys: &[&str], arguments: &[&str]) -> String {
        let text = &self.scripts[name];
        let (flags, body) = text.split_once('\n').unwrap();
        let first = body.lines().next().unwrap();
        let part = |part: &&str| first.contains(&format!("{part}.lua"));
        let parts = [
            "first_grant",
            "first_raise",
            "first_release",
            "serving",
            "healing",
            "greater",
            "counts",
            "lease",
        ];
        let parts = parts.into_iter().filter(part);
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

    /// Asks for the lease. The answer is "COUNT:LIFE" if it is granted.
    async fn acquire(&self, holder: &str, nonce: &str) -> String {
        let keys = [MARKER, COUNTER, LEASE, &ended(holder)];
        let (head, tail) = (format!("{holder}:{nonce}:0:"), format!(":12:{nonce}:"));
        let arguments = [head.as_str(), &tail, "40000", "20000"];
        self.run("acquire", &keys, &arguments).await
    }

    async fn raise(
        &self,
        incarnation: &str,
        holder: &str,
        nonce: &str,
        count: &str,
        to: &str,
    ) -> String {
        let lease = format!("{holder}:{nonce}:");
        let arguments = [incarnation, &lease, count, to];
        // A token that is equal to the count is left out, as the backend does it.
        let many = if to == count { 3 } else { 4 };
        self.run("raise", &[MARKER, COUNTER, LEASE], &arguments[..many])
            .await
    }

    async fn release(&self, holder: &str, token: &str) -> String {
        let keys = [MARKER, LEASE, &ended(holder)];
        self.run("release", &keys, &[holder, token]).await
    }

    async fn undo(&self, holder: &str, nonce: &str) -> String {
        let keys = [MARKER, LEASE, &ended(holder)];
        self.run("undo", &keys, &[holder, nonce, nonce]).await
    }

    async fn seed(&self, incarnation: &str, count: &str) -> String {
        self.run("seed", &[MARKER, COUNTER], &[incarnation, count])
            .await
    }

    async fn counter(&self) -> Option<String> {
        self.command(&["GET", COUNTER]).await
    }

    async fn set(&self, key: &str, value: &str) {
        drop(self.command(&["SET", key, value]).await);
    }

    async fn set_for(&self, key: &str, value: &str, millis: u32) {
        let millis = millis.to_string();
        drop(self.command(&["SET", key, value, "PX", &millis]).await);
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
    // The node was taken in so long ago that no lease from before goes on.
    format!("{LIFE}:{state}:40:60000:run")
}

/// Catches: a raise that comes late, or again, lifts a counter although the lease belongs to
/// another try by then.
#[tokio::test]
async fn a_raise_is_let_through_only_if_lease_counter_and_life_are_those_of_the_grant() {
    let node = Node::new().await;
    assert_eq!(node.acquire(A, TRY[0]).await, format!("41:{LIFE}"));
    // A raise to the count itself, which has a fast path, and a raise above it.
    for to in ["41", "50"] {
        assert_eq!(
            node.raise("1-1", A, TRY[0], "41", to).await,
            "other_incarnation"
        );
        assert_eq!(node.raise(LIFE, A, TRY[1], "41", to).await, "lost");
        assert_eq!(node.raise(LIFE, B, TRY[0], "41", to).await, "lost");
        assert_eq!(node.raise(LIFE, A, TRY[0], "40", to).await, "lost");
    }
    assert_eq!(node.raise(LIFE, A, TRY[0], "40", "40").await, "lost");
    assert_eq!(node.counter().await.as_deref(), Some("41"));
    assert_eq!(
        node.run("count", &[MARKER, COUNTER], &[LIFE]).await,
        "counted 42"
    );
    for to in ["41", "50"] {
        assert_eq!(node.raise(LIFE, A, TRY[0], "41", to).await, "passed");
    }
    assert_eq!(node.counter().await.as_deref(), Some("42"));
    let lease = node.command(&["GET", LEASE]).await.unwrap();
    assert!(
        lease.starts_with(&format!("{A}:{}:0:41:", TRY[0])),
        "{lease}"
    );
    // An acquire that arrives again counts up, and the earlier raise does not belong to it.
    assert_eq!(node.acquire(A, TRY[0]).await, format!("43:{LIFE}"));
    assert_eq!(node.raise(LIFE, A, TRY[0], "41", "50").await, "lost");
    assert_eq!(node.raise(LIFE, A, TRY[0], "43", "50").await, "raised");
    assert_eq!(node.raise(LIFE, A, TRY[0], "43", "60").await, "lost");
    assert_eq!(node.counter().await.as_deref(), Some("50"));
    let again = node.acquire(A, TRY[1]).await;
    assert!(again.starts_with("again 50 "), "{again}");
    let held = node.acquire(B, TRY[2]).await;
    assert!(
        held.starts_with("held ") && held.ends_with(TRY[0]),
        "{held}"
    );
}

/// Catches: Lua treats neighbours above 2^53 as one number.
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
    node.set(COUNTER, "forty").await;
    assert_eq!(node.acquire(B, TRY[1]).await, "broken_counter");
    assert_eq!(node.counter().await.as_deref(), Some("forty"));
    assert_eq!(node.command(&["GET", LEASE]).await, None);
}

/// Catches: the fast path of a script has another effect than its slow path.
#[tokio::test]
async fn the_short_way_and_the_long_way_come_to_the_same() {
    let node = Node::new().await;
    let tail = format!(":12:0:{}:", TRY[0]);
    // A request with a floor takes the slow path, and so does an incarnation of another length.
    for (incarnation, floor) in [(LIFE, None), (LIFE, Some("0")), ("1-1", None)] {
        node.delete(COUNTER).await;
        node.set(MARKER, &format!("{incarnation}:s:40:60000:run"))
            .await;
        let keys = [MARKER, COUNTER, LEASE, &ended(A)];
        let head = format!("{A}:{}:0:", TRY[0]);
        let arguments = [&head, &tail, "40000", "20000"];
        let arguments: Vec<&str> = arguments.into_iter().chain(floor).collect();
        let granted = node.run("acquire", &keys, &arguments).await;
        assert_eq!(
            granted,
            format!("41:{incarnation}"),
            "a counter begins at the base"
        );
        let lease = node.command(&["GET", LEASE]).await;
        assert_eq!(lease, Some(format!("{head}41{tail}")));
        for (to, raised) in [("41", "41"), ("50", "50")] {
            node.set_for(LEASE, &format!("{head}41{tail}"), 40_000)
                .await;
            node.set(COUNTER, "41").await;
            assert_eq!(node.raise(incarnation, A, TRY[0], "41", to).await, "raised");
            assert_eq!(node.counter().await.as_deref(), Some(raised));
            let lease = node.command(&["GET", LEASE]).await;
            assert_eq!(lease, Some(format!("{A}:{}:{to}:41{tail}", TRY[0])));
        }
        assert_eq!(node.release(A, "41").await, "not_holder");
        assert_eq!(node.release(B, "50").await, "not_holder");
        assert_eq!(node.release(A, "50").await, "released");
        assert_eq!(node.command(&["GET", LEASE]).await, None);
        assert_eq!(
            node.command(&["GET", &ended(A)]).await.as_deref(),
            Some("=50")
        );
        assert_eq!(node.release(A, "50").await, "released", "it is remembered");
        node.delete(&ended(A)).await;
        // The key of a lease stays for a while after the end of the lease. During this time the
        // lease cannot be released.
        let ran_out = format!("{A}:{}:50:41{tail}", TRY[0]);
        node.set_for(LEASE, &ran_out, 15_000).await;
        assert_eq!(node.release(A, "50").await, "not_holder");
        assert_eq!(node.command(&["GET", LEASE]).await, Some(ran_out));
        node.delete(LEASE).await;
    }
}

/// Catches: a late undo ends the lease of a later try.
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

/// Leases of ten hours, and six minutes more for clocks that run unevenly.
const LONGEST_MS: u64 = 36_000_000;
const DRIFT_MS: u64 = LONGEST_MS / 100 + 2;

/// Makes the node look as if it had been taken in this long ago.
async fn taken_in(node: &Node, millis_ago: u64) -> String {
    let now = TokioRuntime.unix_time().as_millis();
    let incarnation = format!("{}000-0123456789abcdef", now - u128::from(millis_ago));
    let marker = format!("{incarnation}:h:40:{LONGEST_MS}:run");
    node.set(MARKER, &marker).await;
    incarnation
}

/// Catches: a node that serves while a lease that it has forgotten goes on.
#[tokio::test]
async fn a_node_is_quiet_for_the_longest_lease_and_for_its_drift() {
    let node = Node::new().await;
    let serve = async |incarnation: String| node.run("serve", &[MARKER], &[&incarnation]).await;
    for early in [DRIFT_MS / 2, LONGEST_MS] {
        let incarnation = taken_in(&node, LONGEST_MS + DRIFT_MS - early).await;
        let answer = serve(incarnation).await;
        let left = answer.strip_prefix("quiet ").expect(&answer).parse();
        let left: u64 = left.unwrap();
        assert!(left <= early && left > early - 60_000, "{left} of {early}");
    }
    let incarnation = taken_in(&node, LONGEST_MS + DRIFT_MS).await;
    assert_eq!(serve(incarnation).await, "serves");
}

/// Catches: a lease is renewed to more than the longest lease, so that it goes on when a node that
/// has forgotten it serves.
#[tokio::test]
async fn a_lease_is_renewed_to_no_more_than_a_node_that_lost_its_state_is_quiet() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    node.raise(LIFE, A, TRY[0], "41", "41").await;
    let renew = async |ttl: &str| {
        let whose = format!("{A}:41");
        node.run("renew", &[MARKER, LEASE], &[ttl, "12", &whose])
            .await
    };
    let left = async || {
        let left: i64 = redis::cmd("PTTL")
            .arg(LEASE)
            .query_async(&mut node.connection.clone())
            .await
            .unwrap();
        left
    };
    let before = left().await;
    assert_eq!(renew("60001").await, "renewed l");
    assert!(left().await <= before, "it is as it was");
    assert_eq!(renew("60000").await, "renewed r");
    assert!(left().await > before);
}

/// Catches: a `serve` or a seed that comes late brings a node into service that has lost its state
/// again.
#[tokio::test]
async fn a_node_serves_only_in_the_life_in_which_it_was_healed() {
    let node = Node::new().await;
    let earlier = taken_in(&node, 2 * LONGEST_MS + DRIFT_MS).await;
    let incarnation = taken_in(&node, LONGEST_MS + DRIFT_MS + 1).await;
    let healing = format!("{incarnation}:h:40:{LONGEST_MS}:run");
    let serve = async |incarnation: &str| node.run("serve", &[MARKER], &[incarnation]).await;
    assert_eq!(serve(&earlier).await, format!("other {healing}"));
    assert_eq!(
        node.acquire(A, TRY[0]).await,
        format!("not_serving {healing}")
    );
    assert_eq!(serve(&incarnation).await, "serves");
    assert_eq!(serve(&incarnation).await, "serves", "sent again");
    assert_eq!(node.acquire(A, TRY[0]).await, format!("41:{incarnation}"));
    let marker = node.command(&["GET", MARKER]).await.unwrap();
    assert_eq!(marker, format!("{incarnation}:s:40:{LONGEST_MS}:run"));
    // A seed that arrives late.
    assert_eq!(
        node.seed(&incarnation, "90").await,
        format!("other {marker}")
    );
    assert_eq!(node.counter().await.as_deref(), Some("41"));
}

/// Catches: healing lowers a counter, or begins a counter in place of a broken one.
#[tokio::test]
async fn several_counters_are_looked_for_counted_and_seeded_in_one_life() {
    let node = Node::new().await;
    node.set(COUNTER, "41").await;
    node.set("t:counter:broken", "not a count").await;
    let keys = [MARKER, COUNTER, "t:counter:new", "t:counter:broken"];
    assert_eq!(
        node.run("count", &keys, &[LIFE]).await,
        "counted 42 41 broken_counter"
    );
    assert_eq!(
        node.run("count", &keys, &["1-1"]).await,
        "other_incarnation"
    );
    node.set(MARKER, &marker('h')).await;
    let keys = [MARKER, COUNTER, "t:counter:lost"];
    assert_eq!(
        node.run("missing", &keys, &[LIFE]).await,
        "missing t:counter:lost"
    );
    let other = format!("other {}", marker('h'));
    assert_eq!(node.run("missing", &keys, &["1-1"]).await, other);
    let seed = async |life: &str| node.run("seed", &keys, &[life, "7", "70"]).await;
    assert_eq!(seed("1-1").await, other);
    assert_eq!(
        node.run("count", &keys, &[LIFE]).await,
        format!("not_serving {}", marker('h')),
        "it knows nothing to heal others with"
    );
    assert_eq!(seed(LIFE).await, "seeded");
    assert_eq!(
        node.counter().await.as_deref(),
        Some("42"),
        "it replaces none"
    );
    assert_eq!(
        node.command(&["GET", "t:counter:lost"]).await.as_deref(),
        Some("70")
    );
}

#[tokio::test]
async fn a_delete_of_a_clearing_that_comes_in_late_deletes_nothing() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    let clear = async |marker: &str| {
        node.run("clear", &[MARKER, LEASE, COUNTER], &[marker])
            .await
    };
    let (first, second) = ("1-1:c:0:0:run", "2-2:c:0:0:run");
    assert_eq!(clear(first).await, format!("other {}", marker('s')));
    node.set(MARKER, second).await;
    assert_eq!(clear(first).await, format!("other {second}"));
    assert_eq!(node.counter().await.as_deref(), Some("41"));
    node.delete(MARKER).await;
    assert_eq!(clear(first).await, "other ");
    node.set(MARKER, first).await;
    assert_eq!(clear(first).await, "cleared");
    assert_eq!(node.counter().await, None);
}

/// Catches: a script that does not check the marker.
#[tokio::test]
async fn a_node_that_does_not_serve_refuses_everything() {
    let node = Node::new().await;
    node.acquire(A, TRY[0]).await;
    for (marker, says) in [
        (None, "no_state".to_owned()),
        (Some(marker('r')), format!("not_serving {}", marker('r'))),
        (Some(marker('p')), format!("not_serving {}", marker('p'))),
        (Some(marker('h')), format!("not_serving {}", marker('h'))),
    ] {
        match marker {
            Some(marker) => node.set(MARKER, &marker).await,
            None => node.delete(MARKER).await,
        }
        assert_eq!(node.acquire(B, TRY[1]).await, says);
        assert_eq!(node.raise(LIFE, A, TRY[0], "41", "50").await, says);
        assert_eq!(node.undo(A, TRY[0]).await, says);
        assert_eq!(node.run("count", &[MARKER, COUNTER], &[LIFE]).await, says);
        let page = [LIFE, "0", "t:counter:*", "50"];
        assert_eq!(node.run("list", &[MARKER], &page).await, says);
    }
    assert_eq!(node.counter().await.as_deref(), Some("41"));
}

/// Catches: a request that is sent twice brings back an incarnation that was lost.
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
