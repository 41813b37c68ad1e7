//! The list.

use std::{
    fmt::{self, Display, Formatter},
    time::Duration,
};

use e2e::proxy::Fault;
use futures_util::future::join_all;
use tokio::time::Instant;

use crate::failover::{
    books::Books,
    crew::{Before, Crew, HELD_TTL, Place, Recovery},
    endpoint::Endpoint,
};

/// One thing that happens to an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    /// A proxy drops all sessions.
    SessionsAreReset,
    /// A proxy forgets all sessions, and neither end learns of it.
    SessionsAreForgotten,
    /// For longer than a request may take, and shorter than a lease.
    Silent,
    /// For longer than a lease; connections are refused.
    Away,
    /// It leads to a replica, and back.
    TakesNoWrites,
    /// It leads to a replica that was promoted.
    Succeeded,
}

/// One after the other, with the same clients: the last one is for good.
const ALL: [Case; 6] = [
    Case::SessionsAreReset,
    Case::SessionsAreForgotten,
    Case::Silent,
    Case::Away,
    Case::TakesNoWrites,
    Case::Succeeded,
];

/// All cases, after each of which everything works again without a restart.
pub(crate) async fn all<E: Endpoint>() {
    let endpoint = E::start().await;
    let crews = endpoint.crews().await;
    for case in ALL {
        if case == Case::SessionsAreForgotten && !E::REPLACES_SILENT_SESSIONS {
            println!("| {}: {case:?} is not promised |", E::NAME);
            continue;
        }
        let before = join_all(crews.iter().map(Crew::before)).await;
        let begun = Instant::now();
        case.happens(&endpoint, &crews, &before).await;
        let (back, away) = (Instant::now(), begun.elapsed());
        let recover = crews.iter().zip(before);
        let recover = recover.map(|(crew, before)| crew.recovers(before, back));
        let recovered = join_all(recover).await;
        for (crew, recovery) in crews.iter().zip(recovered) {
            let name = format!("{}, {}", E::NAME, crew.place.name);
            println!(
                "| {name} | {case:?} | {:.1} s {recovery}",
                away.as_secs_f64()
            );
            case.check(&crew.place, &recovery, away);
        }
    }
    for crew in crews {
        crew.ends().await;
    }
}

impl Case {
    /// When this returns, there is again, or for good, a server behind the endpoint.
    async fn happens<E: Endpoint>(
        self,
        endpoint: &E,
        crews: &[Crew<E::Db>],
        before: &[Before<E::Db>],
    ) {
        let names = endpoint.names();
        match self {
            Self::SessionsAreReset => names.end_sessions(Fault::Reset),
            Self::SessionsAreForgotten => names.end_sessions(Fault::DropRequests),
            Self::Silent => {
                names.fall_silent();
                crews[0].has_no_answer().await;
                names.speak_again();
            }
            Self::Away => {
                names.lead_nowhere();
                let lost = crews.iter().zip(before);
                let lost = join_all(lost.map(|(crew, before)| crew.loses(before)));
                tokio::join!(lost, are_refused(crews));
                names.lead_back();
            }
            Self::TakesNoWrites => {
                endpoint.takes_no_writes().await;
                are_refused(crews).await;
                endpoint.takes_writes().await;
            }
            Self::Succeeded => endpoint.is_succeeded().await,
        }
    }

    fn check(self, place: &Place, recovery: &Recovery, away: Duration) {
        // A lease is renewed when a third of it is over.
        let is_outlasted = away < HELD_TTL.get() * 2 / 3;
        match self {
            Self::SessionsAreReset | Self::Silent => {
                assert!(recovery.is_kept || !is_outlasted, "{self:?} for {away:?}");
            }
            Self::Away => assert_ne!(recovery.is_kept, place.loses_leases),
            Self::SessionsAreForgotten | Self::TakesNoWrites | Self::Succeeded => {}
        }
    }
}

async fn are_refused<DB: Books>(crews: &[Crew<DB>]) {
    join_all(crews.iter().map(Crew::is_refused)).await;
}

impl Display for Recovery {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for took in [
            self.manager,
            self.waiter,
            self.leader,
            self.job,
            self.gateway,
            self.pool,
        ] {
            write!(f, "| {} ", took.as_millis())?;
        }
        let lease = if self.is_kept { "kept" } else { "lost" };
        write!(f, "| {lease} |")
    }
}
