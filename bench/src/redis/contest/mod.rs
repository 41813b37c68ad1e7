//! Waiters in several processes that compete for one resource.

mod contender;
mod fair_list;
mod ours;
mod player;
mod retry;
mod theirs;
mod verdict;
mod wire;

use std::{
    env,
    process::Stdio,
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use lock_core::ResourceName;
use redis::aio::MultiplexedConnection;
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

pub(crate) use self::player::play;
pub(super) use self::verdict::Verdict;
use self::verdict::{Hold, judge};
use super::{commands, server::Server};
use crate::{figure::BoxError, monotonic::now_ns};

/// The strategy of the waiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Strategy {
    /// Ours: first come, first served.
    Direct,
    /// Ours, with the waiters of a process passing the lock on among themselves.
    Cohort,
    /// The release is published, and one waiter of every process tries.
    Retry,
    /// Waiters in a list and a sorted set; the first one is told to try.
    FairList,
    /// The peer in Rust: waiters poll.
    Rslock,
}

/// The participants, and their strategy.
#[derive(Clone, Copy, Debug)]
pub(super) struct Contest {
    pub(super) strategy: Strategy,
    pub(super) processes: u32,
    /// The number of waiters in each process.
    pub(super) waiters: u32,
    /// How long a waiter holds the resource.
    pub(super) hold: Duration,
    /// How long a waiter does something else before it asks again.
    pub(super) think: Duration,
    /// How long the contest is measured, after everybody is in line.
    pub(super) watched: Duration,
}

/// The instructions for one process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Job {
    url: String,
    resource: String,
    strategy: Strategy,
    process: u32,
    waiters: u32,
    hold: Duration,
    think: Duration,
}

/// If not everybody is in line after this time, something is wrong.
const LINING_UP_MAX: Duration = Duration::from_secs(60);

/// The part of the time that is not measured: the first hand-offs are slowed down by cold caches.
const WARM_UP: f64 = 0.15;

impl Contest {
    /// Runs the contest once, on a fresh resource.
    ///
    /// The first process takes the resource before anybody else asks, and gives it back when
    /// everybody is in line.
    pub(super) async fn run(&self, server: &Server) -> Result<Verdict, BoxError> {
        let mut admin = server.connect().await?;
        let resource = fresh_resource();
        let mut players = self.players(server, &resource).await?;
        let sent_before = commands::sent(&mut admin).await?;
        let asked_before = commands::called(&mut admin, self.strategy.asks_with()).await?;
        for player in &mut players {
            player.tell("line up").await?;
        }
        let started = Instant::now();
        while !self.is_lined_up(&mut admin, asked_before).await? {
            if started.elapsed() > LINING_UP_MAX {
                return Err(format!("not everybody is in line after {LINING_UP_MAX:?}").into());
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        if self.strategy == Strategy::Direct {
            until_all_wait(server, &resource, self.everybody().into()).await?;
        }
        players[0].tell("open").await?;

        let opened = now_ns();
        tokio::time::sleep(self.watched).await;
        let closed = now_ns();
        let mut holds = Vec::new();
        for player in &mut players {
            player.commands = None;
        }
        for player in players {
            holds.extend(player.holds().await?);
        }
        let sent = commands::sent(&mut admin).await? - sent_before;
        let watched = closed - opened;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a fraction of a positive number"
        )]
        let warm_up = (watched as f64 * WARM_UP) as u64;
        judge(holds, opened + warm_up..closed, self.everybody(), sent)
    }

    async fn players(&self, server: &Server, resource: &str) -> Result<Vec<Player>, BoxError> {
        let mut players = Vec::new();
        for process in 0..self.processes {
            let job = Job {
                url: server.url().to_owned(),
                resource: resource.to_owned(),
                strategy: self.strategy,
                process,
                waiters: self.waiters,
                hold: self.hold,
                think: self.think,
            };
            players.push(Player::start(&job).await?);
        }
        Ok(players)
    }

    /// Whether everybody has asked once.
    async fn is_lined_up(
        &self,
        admin: &mut MultiplexedConnection,
        asked_before: u64,
    ) -> Result<bool, BoxError> {
        let asked = commands::called(admin, self.strategy.asks_with()).await?;
        Ok(asked - asked_before >= u64::from(self.first_requests()))
    }

    const fn everybody(&self) -> u32 {
        self.processes * self.waiters
    }

    /// The number of requests by which everybody is in line.
    const fn first_requests(&self) -> u32 {
        match self.strategy {
            // One for all waiters of a process, and none in the process that holds the resource
            // meanwhile.
            Strategy::Cohort => self.processes - 1,
            _ => self.everybody(),
        }
    }
}

fn fresh_resource() -> String {
    static CONTESTS: AtomicU32 = AtomicU32::new(0);
    format!("contest:{}", CONTESTS.fetch_add(1, Ordering::Relaxed))
}

/// Our waiters ask once before they subscribe to their wake-ups, and get in line after that.
async fn until_all_wait(server: &Server, resource: &str, waiters: u64) -> Result<(), BoxError> {
    let locks = palisade::connect(server.url()).await?;
    let resource = ResourceName::new(resource)?;
    let started = Instant::now();
    while locks.inspect(&resource).await?.waiters < Some(waiters) {
        if started.elapsed() > LINING_UP_MAX {
            return Err(format!("not everybody is in line after {LINING_UP_MAX:?}").into());
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(())
}

impl Strategy {
    /// The command with which a waiter asks for the first time.
    const fn asks_with(self) -> &'static str {
        match self {
            Self::Direct | Self::Cohort | Self::Retry | Self::FairList => "evalsha",
            Self::Rslock => "set",
        }
    }
}

/// A participating process. Each line on its input tells it to go on, and the end of input to end.
struct Player {
    commands: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    process: Child,
}

impl Player {
    /// Starts a process, and returns when it is connected.
    async fn start(job: &Job) -> Result<Self, BoxError> {
        let mut process = Command::new(env::current_exe()?)
            .arg("player")
            .arg(serde_json::to_string(job)?)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let commands = process.stdin.take();
        let answers = process.stdout.take().ok_or("a player without stdout")?;
        let mut player = Self {
            commands,
            answers: BufReader::new(answers),
            process,
        };
        let mut ready = String::new();
        player.answers.read_line(&mut ready).await?;
        if ready.trim_end() == player::READY {
            Ok(player)
        } else {
            Err("a player did not get ready".into())
        }
    }

    async fn tell(&mut self, line: &str) -> Result<(), BoxError> {
        let commands = self.commands.as_mut().ok_or("a player was told to end")?;
        commands.write_all(line.as_bytes()).await?;
        commands.write_all(b"\n").await?;
        Ok(commands.flush().await?)
    }

    /// Waits for the end of the process, and reads what it has seen.
    async fn holds(mut self) -> Result<Vec<Hold>, BoxError> {
        let mut answer = Vec::new();
        self.answers.read_to_end(&mut answer).await?;
        let status = self.process.wait().await?;
        if !status.success() {
            return Err(format!("a player failed: {status}").into());
        }
        Ok(serde_json::from_slice(&answer)?)
    }
}
