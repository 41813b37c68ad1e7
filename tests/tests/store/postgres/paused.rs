//! An older holder whose process is really stopped inside its transaction. No timeout would end the
//! transaction.

use std::time::{Duration, Instant};

use e2e::{process::Process, servers::until};
use fenced_store::{PgFencedStore, PgTxOptions};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    postgres::server::PostgresServer,
    rule::{Harness, assert_kind, balance, fenced_add, fresh, grant, high_water},
};

const LOCK_TIMEOUT: Duration = Duration::from_millis(300);

/// The time of a few lock timeouts, on a machine that is busy with other tests.
const SOON: Duration = Duration::from_secs(5);

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    Idle,
    Slow,
    Chatty,
    Receiving,
}

impl State {
    const ALL: [Self; 4] = [Self::Idle, Self::Slow, Self::Chatty, Self::Receiving];

    const fn argument(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Slow => "slow",
            Self::Chatty => "chatty",
            Self::Receiving => "receiving",
        }
    }

    /// The server's description of a session in this state before it is stopped.
    const fn before(self) -> &'static str {
        match self {
            Self::Idle => "state = 'idle in transaction'",
            Self::Slow => "wait_event = 'PgSleep'",
            Self::Chatty => "query LIKE '%still here%'",
            Self::Receiving => "state = 'active' AND query LIKE '%generate_series%'",
        }
    }

    /// The server's description of a session after its client was stopped.
    const fn after(self) -> &'static str {
        match self {
            Self::Receiving => "wait_event = 'ClientWrite'",
            state => state.before(),
        }
    }
}

#[derive(Deserialize)]
struct Inside {
    session: i32,
}

/// A process that holds the fence with this token, has written, and is stopped. A chatty process is
/// stopped and resumed again and again.
async fn stopped_holder(world: &PostgresServer, state: State, token: u64) -> Process {
    let token = token.to_string();
    let mut holder = Process::spawn(
        "e2e-worker",
        [
            "transaction",
            "--store",
            world.url(),
            "--resource",
            "account:42",
            "--token",
            &token,
            "--state",
            state.argument(),
        ],
    );
    let Inside { session } = holder.event().await;
    until_session(world, session, state.before()).await;
    holder.pause().await;
    until_session(world, session, state.after()).await;
    if state == State::Chatty {
        holder.resume();
    }
    holder
}

async fn until_session(world: &PostgresServer, session: i32, so: &'static str) {
    let look = format!("SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND {so}");
    until(so, async || {
        let look = sqlx::query_scalar(sqlx::AssertSqlSafe(look.clone())).bind(session);
        let found: i64 = look.fetch_one(world.store().pool()).await.unwrap();
        found == 1
    })
    .await;
}

fn store(world: &PostgresServer, terminate_older: bool) -> PgFencedStore {
    let options = PgTxOptions::default()
        .lock_timeout(Some(LOCK_TIMEOUT))
        .terminate_older(terminate_older);
    world.store().clone().with_options(options)
}

/// The control comes first: if claims end no sessions, each stopped holder holds up the next holder
/// without bound. If claims end sessions, the next holder gets through soon, whatever the older
/// holder is doing, and no write of the older holder is ever committed.
#[tokio::test]
async fn a_stopped_holder_is_ended_whatever_it_is_doing() {
    for state in State::ALL {
        let world: PostgresServer = fresh().await;
        let mut stopped = stopped_holder(&world, state, 33).await;
        let next = grant("account:42", 34);
        let busy = store(&world, false).claim(&next).await.unwrap_err();
        assert_kind!(busy, Busy, "{state:?}");
        let mark = high_water(&world, "account:42").await;
        assert_eq!(mark, Some(33), "{state:?}");

        let started = Instant::now();
        store(&world, true).claim(&next).await.unwrap();
        let waited = started.elapsed();
        assert!(waited >= LOCK_TIMEOUT, "{state:?} was not in the way");
        assert!(waited < SOON, "{state:?} held it up for {waited:?}");
        fenced_add(&world, &next).await.unwrap();

        // The other processes find out by themselves that their statements have ended.
        if state == State::Idle {
            stopped.send(&"commit").await;
        }
        stopped.resume();
        let end: Value = stopped.event().await;
        assert!(end.get("failed").is_some(), "{state:?}: {end}");
        assert_eq!(balance(&world).await, 101);
    }
}
