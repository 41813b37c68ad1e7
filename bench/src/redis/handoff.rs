//! A contended lock: the time from one holder to the next.

use std::time::Duration;

use e2e::servers::Redis;
use futures_util::future::try_join_all;

use super::{
    contest::{Contest, Verdict},
    floor::Hop,
    rslock::Rslock,
};
use crate::{
    figure::{BoxError, Measured, Unit},
    paired::{Samples, take_turns},
    pinning::start_server,
};

/// A contest is long, so it is run this many times less often than a cycle.
const ROUNDS_PER_CONTEST: u32 = 8;

const HOPS_PER_TURN: u32 = 1000;

fn contests(rounds: u32) -> u32 {
    std::cmp::max(rounds / ROUNDS_PER_CONTEST, 1)
}

/// How long the lock is free although clients wait for it. Waiters pause after they have held it.
/// Otherwise, with a polling peer, only the waiter that gives the lock back would ever get it
/// again.
pub(super) async fn idle_gap_vs_rslock(rounds: u32) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let contest = Contest {
        waiters: 8,
        hold: Duration::from_millis(1),
        think: Duration::from_millis(2),
        watched: Duration::from_secs(1),
    };
    let medians = take_turns(
        contests(rounds),
        async |samples| {
            let locks = palisade::connect(server.url()).await?;
            samples.push(contest.run(&[locks]).await?.gap_us);
            Ok(())
        },
        async |samples| {
            let rslock = Rslock::new(server.url());
            samples.push(contest.run(&[rslock]).await?.gap_us);
            Ok(())
        },
    )
    .await?;
    Ok(medians.other_by_ours(Unit::Micros))
}

/// Among waiters of one client, until acquire has returned. Here the answer to a release has the
/// lease of the next waiter.
pub(super) async fn inside_vs_script(rounds: u32) -> Result<Measured, BoxError> {
    let least = Least {
        pushes: 0,
        answers: 1,
    };
    vs(rounds, 8, 1, |verdict| verdict.returned_us, least).await
}

pub(super) async fn p50_vs_push(rounds: u32) -> Result<Measured, BoxError> {
    let least = Least {
        pushes: 1,
        answers: 0,
    };
    vs(rounds, 64, 2, |verdict| verdict.handoff_us, least).await
}

/// Compares with the least work of a waiter: to receive a push, and to confirm.
pub(super) async fn returned_vs_push(rounds: u32) -> Result<Measured, BoxError> {
    let least = Least {
        pushes: 1,
        answers: 1,
    };
    vs(rounds, 64, 2, |verdict| verdict.returned_us, least).await
}

/// The least work of a hand-off.
struct Least {
    pushes: u32,
    answers: u32,
}

/// Runs contests among this number of waiters, of clients that take turns. Compares them with the
/// least work.
async fn vs(
    rounds: u32,
    waiters: u32,
    clients: usize,
    number: fn(Verdict) -> f64,
    least: Least,
) -> Result<Measured, BoxError> {
    let server = start_server(Redis::start)?;
    let contest = Contest {
        waiters,
        hold: Duration::ZERO,
        think: Duration::ZERO,
        watched: Duration::from_millis(400),
    };
    let mut hop = Hop::connect(server.url()).await?;
    let medians = take_turns(
        contests(rounds),
        async |samples| {
            let connecting = (0..clients).map(|_| palisade::connect(server.url()).into_future());
            let clients = try_join_all(connecting).await?;
            samples.push(number(contest.run(&clients).await?));
            Ok(())
        },
        async |samples| {
            let mut hops = Samples::default();
            for _ in 0..HOPS_PER_TURN {
                let mut took = 0.0;
                for _ in 0..least.pushes {
                    took += hop.time().await?;
                }
                for _ in 0..least.answers {
                    took += hop.time_of_an_answer().await?;
                }
                hops.push(took);
            }
            samples.push(hops.median());
            Ok(())
        },
    )
    .await?;
    Ok(medians.ours_by_other(Unit::Micros))
}
