//! The format that `palisade-demo draw` reads (`demo-service/src/events`).

use serde::Serialize;

/// A schedule to be drawn.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Recording {
    pub(super) lock: &'static str,
    pub(super) store: &'static str,
    pub(super) ttl_ms: u64,
    pub(super) pause_ms: u64,
    pub(super) runs: u32,
    pub(super) schedule: Heading,
    pub(super) events: Vec<Event>,
}

/// The words around the picture.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Heading {
    pub(super) title: String,
    /// The names of the lanes of the clients.
    pub(super) clients: [String; 2],
    pub(super) verdict: String,
}

#[derive(Clone, Debug, Serialize)]
pub(super) struct Event {
    pub(super) run: u32,
    pub(super) act: &'static str,
    pub(super) at_ms: u64,
    pub(super) lane: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) client: Option<&'static str>,
    #[serde(flatten)]
    pub(super) what: What,
}

/// The kinds of events, as that program has them.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(super) enum What {
    AcquireRequested {
        wait_ms: u64,
    },
    Granted {
        token: u64,
        ttl_ms: u64,
    },
    Claimed {
        token: u64,
    },
    Renewed {
        token: u64,
        ttl_ms: u64,
    },
    LeaseExpired {
        token: u64,
    },
    Released {
        token: u64,
    },
    LetGo,
    Read {
        balance: u64,
    },
    Paused {
        pid: u32,
    },
    Resumed {
        pid: u32,
        paused_ms: u64,
    },
    Killed {
        pid: u32,
    },
    WriteAccepted {
        token: u64,
        status: u16,
        high_water: u64,
        before: u64,
        after: u64,
    },
    WriteRefused {
        token: u64,
        status: u16,
        high_water: u64,
        attempted: u64,
    },
    Verdict {
        expected: u64,
        found: u64,
        lost_update: bool,
        as_told: bool,
    },
}

/// The two clients of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    One,
    Two,
}

impl Side {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::One => "client-1",
            Self::Two => "client-2",
        }
    }
}

impl What {
    /// The lane in which the event is drawn.
    pub(super) const fn lane(&self, side: Option<Side>) -> &'static str {
        match (self, side) {
            (
                Self::Paused { .. } | Self::Resumed { .. } | Self::Killed { .. } | Self::LetGo,
                Some(side),
            ) => side.name(),
            (
                Self::AcquireRequested { .. }
                | Self::Granted { .. }
                | Self::Renewed { .. }
                | Self::LeaseExpired { .. }
                | Self::Released { .. },
                _,
            ) => "lock",
            _ => "storage",
        }
    }
}
