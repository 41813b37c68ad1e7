use std::fmt;

use clap::ValueEnum;
use lock_core::FencingToken;
use serde::{Deserialize, Serialize};

use super::ExchangeId;

/// One event. Times are milliseconds on one clock, that of the gateway's process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Event {
    /// The number of the repetition, from 1.
    pub(crate) run: u32,
    pub(crate) act: Act,
    #[serde(skip_serializing_if = "Story::is_deposits", default)]
    pub(crate) story: Story,
    /// The time since the recording began.
    pub(crate) at_ms: u64,
    /// The lane in which it happened.
    pub(crate) lane: Lane,
    /// The client that caused the event, or whose lease has changed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub(crate) client: Option<ClientName>,
    /// The request that shows the event: see [`Exchange`](super::Exchange). Not part of a
    /// recording: requests contain tokens, which are secrets.
    #[serde(skip)]
    pub(crate) exchange: Option<ExchangeId>,
    #[serde(flatten)]
    pub(crate) what: What,
}

/// The two halves of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Act {
    /// Act 1: the store takes every write.
    Unfenced,
    /// Act 2: the store refuses a write with an old token.
    Fenced,
}

/// The work of the clients of the scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Story {
    /// Two deposits into one account
    #[default]
    Deposits,
    /// One job that must run once, and two runners for it
    Jobs,
}

/// The two clients of the scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum ClientName {
    /// The client that is paused.
    #[serde(rename = "client-1")]
    One,
    /// The client that works meanwhile.
    #[serde(rename = "client-2")]
    Two,
}

/// The lane in which an event is drawn, top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Lane {
    #[serde(rename = "client-1")]
    Client1,
    #[serde(rename = "lock")]
    Lock,
    #[serde(rename = "client-2")]
    Client2,
    #[serde(rename = "storage")]
    Storage,
}

/// The kind of an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum What {
    /// A client asks for the lease and is ready to wait this long.
    AcquireRequested { wait_ms: u64 },
    /// The wait was over, and another client still held the lease.
    Held { retry_after_ms: u64 },
    /// The lease is the client's, with this token.
    Granted { token: FencingToken, ttl_ms: u64 },
    /// The store's high-water mark is now this token: older ones are shut out.
    Claimed { token: FencingToken },
    /// The lease goes on for another ttl.
    Renewed { token: FencingToken, ttl_ms: u64 },
    /// The lease had ended when the client tried to renew it.
    RenewRefused { token: FencingToken },
    /// The lease ended by itself.
    LeaseExpired { token: FencingToken },
    /// The client gave the lease back.
    Released { token: FencingToken },
    /// The client no longer believes that it has the lease. Only simulated clients report that.
    LetGo,
    /// The client read the balance.
    Read { balance: i64 },
    /// The process was stopped.
    Paused { pid: u32 },
    /// The process goes on.
    Resumed { pid: u32, paused_ms: u64 },
    /// The process was killed.
    Killed { pid: u32 },
    /// The balance was written. `high_water` only if the store compared the token.
    WriteAccepted {
        token: Option<FencingToken>,
        status: u16,
        high_water: Option<FencingToken>,
        before: Option<i64>,
        after: i64,
    },
    /// The balance was not changed. `token` is the token of the request, right or wrong. `problem`
    /// is the name of the problem.
    WriteRefused {
        token: Option<FencingToken>,
        status: u16,
        high_water: Option<FencingToken>,
        attempted: i64,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        problem: String,
    },
    /// The result of the act.
    Verdict {
        expected: i64,
        found: i64,
        lost_update: bool,
        as_told: bool,
    },
}

impl Event {
    /// An event in the lane where its kind happens.
    pub(crate) const fn new(
        (run, act): (u32, Act),
        at_ms: u64,
        client: Option<ClientName>,
        what: What,
    ) -> Self {
        let lane = match (&what, client) {
            (what, Some(client)) if what.is_of_client() => Lane::of(client),
            (
                What::AcquireRequested { .. }
                | What::Held { .. }
                | What::Granted { .. }
                | What::Renewed { .. }
                | What::RenewRefused { .. }
                | What::LeaseExpired { .. }
                | What::Released { .. },
                _,
            ) => Lane::Lock,
            _ => Lane::Storage,
        };
        Self {
            run,
            act,
            story: Story::Deposits,
            at_ms,
            lane,
            client,
            exchange: None,
            what,
        }
    }

    /// The same event, seen in this request.
    pub(crate) const fn seen_in(mut self, exchange: Option<ExchangeId>) -> Self {
        self.exchange = exchange;
        self
    }

    /// Whether the event is not shown: act 1 does not use the mark, so a raise of the mark is not
    /// part of its story.
    pub(crate) fn is_behind_the_scenes(&self) -> bool {
        self.act == Act::Unfenced && matches!(self.what, What::Claimed { .. })
    }
}

impl What {
    /// A write that changed a balance.
    pub(crate) const fn written(
        token: Option<FencingToken>,
        high_water: Option<FencingToken>,
        (before, after): (Option<i64>, i64),
    ) -> Self {
        Self::WriteAccepted {
            token,
            status: 200,
            high_water,
            before,
            after,
        }
    }

    /// Whether the event happens inside a client, where no other process sees it.
    const fn is_of_client(&self) -> bool {
        matches!(
            self,
            Self::Paused { .. } | Self::Resumed { .. } | Self::Killed { .. } | Self::LetGo
        )
    }
}

impl Lane {
    const fn of(client: ClientName) -> Self {
        match client {
            ClientName::One => Self::Client1,
            ClientName::Two => Self::Client2,
        }
    }
}

impl Story {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde asks")]
    const fn is_deposits(&self) -> bool {
        matches!(self, Self::Deposits)
    }
}

impl Act {
    /// Both acts, in the order in which they are played.
    pub(crate) const BOTH: [Self; 2] = [Self::Unfenced, Self::Fenced];

    /// The path of its account endpoint, up to the id of the account.
    pub(crate) const fn accounts_path(self) -> &'static str {
        match self {
            Self::Unfenced => "/v1/unfenced/accounts",
            Self::Fenced => "/v1/accounts",
        }
    }

    /// The path of its jobs, up to the name of the job.
    pub(crate) const fn jobs_path(self) -> &'static str {
        match self {
            Self::Unfenced => "/v1/unfenced/jobs",
            Self::Fenced => "/v1/jobs",
        }
    }

    /// A headline.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Unfenced => "Act 1: without fencing",
            Self::Fenced => "Act 2: with fencing",
        }
    }
}

/// The name on the command line and in JSON.
impl fmt::Display for Act {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unfenced => "unfenced",
            Self::Fenced => "fenced",
        })
    }
}

impl ClientName {
    /// The name on the command line, in JSON and in the header that names a client to the gateway.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::One => "client-1",
            Self::Two => "client-2",
        }
    }

    /// The name in a sentence.
    pub(crate) const fn for_people(self) -> &'static str {
        match self {
            Self::One => "client 1",
            Self::Two => "client 2",
        }
    }
}

/// The name for people.
impl fmt::Display for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Client1 => "client 1",
            Self::Lock => "lock service",
            Self::Client2 => "client 2",
            Self::Storage => "storage",
        })
    }
}
