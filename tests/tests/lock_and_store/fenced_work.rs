//! Jobs and leaders in real processes, which are killed, stopped and resumed all the time. Beside
//! it each process does the same work under a lease that nothing checks: the control.

use std::{collections::BTreeMap, time::Duration};

use e2e::{
    process::Process,
    servers::{PostgresDatabase, apart, postgres_database, redis},
};
use fenced_jobs::{Schedule, Slot};
use jiff::{SignedDuration, Timestamp};
use rand::{RngExt, SeedableRng, rngs::StdRng, seq::SliceRandom};
use serde_json::Value;
use sqlx::PgPool;
use tokio::time::{sleep, timeout};

const RUNNERS: usize = 5;
const SLOTS: i64 = 1000;
const TTL_MS: u32 = 300;

/// A time limit for runs that take a minute on two cores.
const PATIENCE: Duration = Duration::from_secs(400);

const JOB_TABLES: &str = "
    CREATE TABLE effect (id BIGSERIAL PRIMARY KEY, slot TEXT NOT NULL);
    CREATE TABLE control (id BIGSERIAL PRIMARY KEY, slot TEXT NOT NULL);
    CREATE INDEX ON control (slot);
    CREATE TABLE lease (until TIMESTAMPTZ NOT NULL);
    INSERT INTO lease VALUES ('-infinity')";

const LEADER_TABLES: &str = "
    CREATE TABLE effect (id BIGSERIAL PRIMARY KEY, token BIGINT NOT NULL);
    CREATE TABLE control (id BIGSERIAL PRIMARY KEY, token BIGINT NOT NULL)";

/// Processes of one kind over one database.
struct Runners {
    _database: PostgresDatabase,
    pool: PgPool,
    arguments: Vec<String>,
    since: Timestamp,
    faults: StdRng,
    kills: usize,
    stops: usize,
}

impl Runners {
    async fn new(what: &str, tables: &'static str, lock: Option<&str>) -> Self {
        let database = postgres_database().await;
        let pool = PgPool::connect(database.url()).await.unwrap();
        let store = fenced_store::PgFencedStore::new(pool.clone());
        store.migrate().await.unwrap();
        sqlx::raw_sql(tables).execute(&pool).await.unwrap();
        let since = Timestamp::now() - SignedDuration::from_mins(SLOTS);
        let mut arguments: Vec<String> = [what, "--store", database.url()].map(Into::into).into();
        arguments.extend(["--since".into(), since.to_string()]);
        arguments.extend(["--ttl-ms".into(), TTL_MS.to_string()]);
        if let Some(lock) = lock {
            arguments.extend(["--lock".into(), apart(lock)]);
        }
        let seed = rand::random();
        println!("the faults are those of seed {seed}");
        Self {
            _database: database,
            pool,
            arguments,
            since,
            faults: StdRng::seed_from_u64(seed),
            kills: 0,
            stops: 0,
        }
    }

    async fn start(&self) -> Process {
        let mut runner = Process::spawn("e2e-worker", &self.arguments);
        let ready: Value = runner.event().await;
        assert_eq!(ready["ready"], true);
        runner
    }

    async fn start_all(&self) -> Vec<Process> {
        let mut all = Vec::new();
        for _ in 0..RUNNERS {
            all.push(self.start().await);
        }
        all
    }

    /// Kills a process and starts another, or stops two for longer than a lease.
    async fn inflict(&mut self, runners: &mut [Process]) {
        runners.shuffle(&mut self.faults);
        if self.faults.random_bool(0.3) {
            self.kills += 1;
            runners[0].kill().await;
            runners[0] = self.start().await;
            return;
        }
        self.stops += 2;
        for stopped in &runners[..2] {
            stopped.pause().await;
        }
        let longer = u64::from(TTL_MS) * self.faults.random_range(1..=2);
        sleep(Duration::from_millis(longer)).await;
        for stopped in &runners[..2] {
            stopped.resume();
        }
    }

    async fn column<T>(&self, query: &'static str) -> Vec<T>
    where
        T: Send + Unpin + for<'r> sqlx::Decode<'r, sqlx::Postgres> + sqlx::Type<sqlx::Postgres>,
    {
        let rows = sqlx::query_scalar(query).fetch_all(&self.pool);
        rows.await.unwrap()
    }

    /// The leaders' tokens in the order of their writes: with the fence, and in the control.
    async fn tokens(&self) -> [Vec<i64>; 2] {
        [
            self.column("SELECT token FROM effect ORDER BY id").await,
            self.column("SELECT token FROM control ORDER BY id").await,
        ]
    }
}

/// How many of these values are there more than once.
fn duplicates(slots: &[String]) -> usize {
    let mut times = BTreeMap::new();
    for slot in slots {
        *times.entry(slot).or_insert(0) += 1;
    }
    times.values().filter(|times| **times > 1).count()
}

/// Every slot is done exactly once, in order. The control does some slots twice.
async fn slots_under_fire(lock: Option<&str>) {
    let mut runners = Runners::new("jobs", JOB_TABLES, lock).await;
    let mut processes = runners.start_all().await;
    let done = async {
        loop {
            runners.inflict(&mut processes).await;
            let slots: i64 = runners.column("SELECT count(*) FROM effect").await[0];
            let control: i64 = runners
                .column("SELECT count(DISTINCT slot) FROM control")
                .await[0];
            if slots >= SLOTS - 1 && control >= SLOTS - 1 {
                break;
            }
        }
    };
    timeout(PATIENCE, done).await.expect("all slots are done");
    drop(processes);

    let slots = runners
        .column::<String>("SELECT slot FROM effect ORDER BY id")
        .await;
    let control = runners
        .column::<String>("SELECT slot FROM control ORDER BY id")
        .await;
    let schedule = Schedule::new("* * * * *", "UTC").unwrap();
    let due = schedule.due_since(&Slot::from(runners.since), Timestamp::now());
    let due: Vec<_> = due.take(slots.len()).map(|slot| slot.to_string()).collect();
    let twice = duplicates(&control);
    println!(
        "{} slots, {} kills, {} stops; the control has done {twice} slots more than once",
        slots.len(),
        runners.kills,
        runners.stops,
    );
    assert_eq!(slots, due, "each once, and in order");
    assert!(twice > 0, "the control has to lose what the fence keeps");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_slot_is_done_once_whichever_process_is_killed_or_stopped() {
    slots_under_fire(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_slot_is_done_once_with_redis_in_front() {
    slots_under_fire(Some(redis().await.url())).await;
}

/// No write of a leader is stored after the first write of a later leader. The control looks
/// whether it leads before each write, and stores some such writes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deposed_leader_writes_nothing_whichever_process_is_killed_or_stopped() {
    let mut runners = Runners::new("lead", LEADER_TABLES, None).await;
    let mut processes = runners.start_all().await;
    let late = |tokens: &[i64]| tokens.windows(2).filter(|pair| pair[0] > pair[1]).count();
    let terms = |tokens: &[i64]| tokens.chunk_by(|one, next| one == next).count();
    let stored = async {
        loop {
            runners.inflict(&mut processes).await;
            let [effect, control] = runners.tokens().await;
            if late(&control) > 0 && terms(&effect) > 5 && runners.kills >= 5 {
                return late(&control);
            }
        }
    };
    let late_of_control = timeout(PATIENCE, stored)
        .await
        .expect("the lead changes, and the control goes wrong");
    drop(processes);
    let [effect, _] = runners.tokens().await;
    println!(
        "{} writes in {} terms, {} kills, {} stops; {late_of_control} late writes of the control",
        effect.len(),
        terms(&effect),
        runners.kills,
        runners.stops,
    );
    assert_eq!(late(&effect), 0);
}
