//! The example of docs/fence-your-own-store.md, against a real server.

use e2e::servers::redis;
use lock_core::{FencingToken, Holder, Issuer, ResourceName, Sequencer};
use redis::{AsyncCommands, Client, Script, aio::MultiplexedConnection};

const SCRIPT: &str = include_str!("../../../docs/examples/fenced_value.lua");

/// A resource that only this test uses, on the shared server.
struct Resource {
    name: String,
    connection: MultiplexedConnection,
}

impl Resource {
    async fn new() -> Self {
        let client = Client::open(redis().await.url()).unwrap();
        Self {
            name: format!("account:{:016x}", rand::random::<u64>()),
            connection: client.get_multiplexed_async_connection().await.unwrap(),
        }
    }

    fn grant(&self, issuer: &str, token: u64) -> Sequencer {
        Sequencer::new(
            Issuer::new(issuer).unwrap(),
            ResourceName::new(&*self.name).unwrap(),
            FencingToken::new(token).unwrap(),
            Holder::random(),
        )
    }

    fn key(&self, of: &str) -> String {
        format!("{{{}}}:{of}", self.name)
    }

    async fn call(&mut self, verb: &[&str], grant: &Sequencer) -> Vec<String> {
        let script = Script::new(SCRIPT);
        let mut call = script.prepare_invoke();
        call.key(self.key("mark")).key(self.key("value"));
        call.arg(verb[0])
            .arg(grant.token().get())
            .arg(grant.holder().digest())
            .arg(grant.issuer().as_str())
            .arg(&verb[1..]);
        call.invoke_async(&mut self.connection).await.unwrap()
    }

    /// The value, which any client may read.
    async fn value(&mut self) -> Option<String> {
        let key = self.key("value");
        self.connection.get(key).await.unwrap()
    }

    async fn mark(&mut self) -> Option<String> {
        let key = self.key("mark");
        self.connection.hget(key, "token").await.unwrap()
    }
}

#[tokio::test]
async fn a_script_of_a_few_lines_fences_a_value() {
    let mut account = Resource::new().await;
    let (old, new) = (account.grant("redis", 33), account.grant("redis", 34));
    assert_eq!(account.call(&["claim"], &old).await, ["claimed"]);
    assert_eq!(account.mark().await.as_deref(), Some("33"));
    assert_eq!(account.call(&["get"], &old).await, ["none"]);
    assert_eq!(account.call(&["set", "100"], &old).await, ["written"]);
    let seen = account.call(&["get"], &old).await;
    assert_eq!(seen, ["value", "100"]);

    // The old holder is paused; its lease ends, and another client acquires.
    assert_eq!(account.call(&["claim"], &new).await, ["claimed"]);
    assert_eq!(account.mark().await.as_deref(), Some("34"));
    assert_eq!(account.call(&["set", "90"], &new).await, ["written"]);
    assert_eq!(account.call(&["claim"], &new).await, ["claimed"], "again");

    for verb in [&["set", "110"][..], &["get"], &["claim"]] {
        assert_eq!(account.call(verb, &old).await, ["stale", "34"], "{verb:?}");
    }
    assert_eq!(account.value().await.as_deref(), Some("90"));
    assert_eq!(account.call(&["get"], &new).await, ["value", "90"]);

    // The control: the same late write, unfenced. The newer holder's write is lost.
    let key = account.key("value");
    let () = account.connection.set(key, "110").await.unwrap();
    assert_eq!(account.value().await.as_deref(), Some("110"));
}

#[tokio::test]
async fn the_script_refuses_every_other_grant() {
    let mut account = Resource::new().await;
    let ours = account.grant("redis", 33);
    assert_eq!(account.call(&["set", "1"], &ours).await, ["unclaimed"]);
    assert_eq!((account.mark().await, account.value().await), (None, None));
    account.call(&["claim"], &ours).await;
    account.call(&["set", "1"], &ours).await;

    let (twin, early) = (account.grant("redis", 33), account.grant("redis", 34));
    let foreign = account.grant("etcd", 35);
    for (verb, grant, answer) in [
        (&["claim"][..], &twin, &["duplicate"][..]),
        (&["set", "2"], &twin, &["duplicate"]),
        (&["set", "2"], &early, &["unclaimed"]),
        (&["claim"], &foreign, &["issuer", "redis"]),
        (&["set", "2"], &foreign, &["issuer", "redis"]),
    ] {
        assert_eq!(account.call(verb, grant).await, answer, "{verb:?}");
    }
    assert_eq!(account.mark().await.as_deref(), Some("33"));
    assert_eq!(account.value().await.as_deref(), Some("1"));
}
