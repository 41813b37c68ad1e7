//! A contended lock: how it gets from one holder to the next.

use std::time::Duration;

use super::{
    contest::{Contest, Strategy, Verdict},
    floor::Hop,
    server::Server,
};
use crate::{
    figure::{BoxError, Measured, Setting, Unit},
    paired::{Medians, Samples, take_turns},
};

/// A contest is long, so it is run this many times less often than a cycle.
const ROUNDS_PER_CONTEST: u32 = 8;

const HOPS_PER_TURN: u32 = 1000;

const fn contest(strategy: Strategy, processes: u32, waiters: u32) -> Contest {
    Contest {
        strategy,
        processes,
        waiters,
        hold: Duration::ZERO,
        think: Duration::ZERO,
        watched: Duration::from_millis(400),
    }
}

fn contests(setting: Setting) -> u32 {
    std::cmp::max(setting.rounds / ROUNDS_PER_CONTEST, 1)
}

/// Two contests that take turns, and one number from each.
async fn compare(
    setting: Setting,
    (ours, other): (Contest, Contest),
    number: fn(Verdict) -> f64,
) -> Result<Medians, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let play = async |contest: &Contest, samples: &mut Samples| {
        samples.push(number(contest.run(&server).await?));
        Ok(())
    };
    take_turns(
        contests(setting),
        async |samples| play(&ours, samples).await,
        async |samples| play(&other, samples).await,
    )
    .await
}

/// Several contests of one kind, and the median of one number from them.
async fn repeat(
    setting: Setting,
    contest: Contest,
    number: fn(Verdict) -> f64,
) -> Result<f64, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let mut samples = Samples::default();
    for _ in 0..contests(setting) {
        samples.push(number(contest.run(&server).await?));
    }
    Ok(samples.median())
}

/// How long nobody has the lock although somebody wants it. Waiters pause after they have held it;
/// otherwise, with a polling peer, only the waiter that gives the lock back would ever get it
/// again.
pub(super) async fn idle_gap_vs_rslock(setting: Setting) -> Result<Measured, BoxError> {
    let with = |strategy| Contest {
        hold: Duration::from_millis(1),
        think: Duration::from_millis(2),
        watched: Duration::from_secs(1),
        ..contest(strategy, 1, 8)
    };
    let both = (with(Strategy::Direct), with(Strategy::Rslock));
    let medians = compare(setting, both, |verdict| verdict.gap_us).await?;
    Ok(medians.other_by_ours(Unit::Micros))
}

pub(super) async fn p50_vs_push(setting: Setting) -> Result<Measured, BoxError> {
    vs_push(setting, |verdict| verdict.handoff_us, 0).await
}

/// What a waiter has to do at least: hear of its turn, and say that it is there.
pub(super) async fn returned_vs_push(setting: Setting) -> Result<Measured, BoxError> {
    vs_push(setting, |verdict| verdict.returned_us, 1).await
}

/// A number of contests among 64 waiters of one process, and a push and so many answers more.
async fn vs_push(
    setting: Setting,
    number: fn(Verdict) -> f64,
    answers: u32,
) -> Result<Measured, BoxError> {
    let server = Server::start(setting.pinning).await?;
    let ours = contest(Strategy::Direct, 1, 64);
    let mut hop = Hop::connect(&server).await?;
    let medians = take_turns(
        contests(setting),
        async |samples| {
            samples.push(number(ours.run(&server).await?));
            Ok(())
        },
        async |samples| {
            let mut hops = Samples::default();
            for _ in 0..HOPS_PER_TURN {
                let mut took = hop.time().await?;
                for _ in 0..answers {
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

pub(super) async fn vs_retry(setting: Setting) -> Result<Measured, BoxError> {
    let both = (
        contest(Strategy::Direct, 4, 16),
        contest(Strategy::Retry, 4, 16),
    );
    let medians = compare(setting, both, |verdict| verdict.handoffs_per_second).await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

pub(super) async fn vs_fair_list(setting: Setting) -> Result<Measured, BoxError> {
    let both = (
        contest(Strategy::Direct, 1, 512),
        contest(Strategy::FairList, 1, 512),
    );
    let medians = compare(setting, both, |verdict| verdict.handoff_us).await?;
    Ok(medians.other_by_ours(Unit::Micros))
}

/// Two is the minimum: one to get in line, one to pass the lock on.
pub(super) async fn commands(setting: Setting) -> Result<Measured, BoxError> {
    let ours = contest(Strategy::Direct, 4, 16);
    let commands = repeat(setting, ours, |verdict| verdict.commands_per_hold).await?;
    Ok(Measured {
        ratio: commands,
        ours: commands,
        other: 2.0,
        unit: Unit::Commands,
    })
}

pub(super) async fn many_vs_few(setting: Setting) -> Result<Measured, BoxError> {
    let both = (
        contest(Strategy::Direct, 1, 10_000),
        contest(Strategy::Direct, 1, 8),
    );
    let medians = compare(setting, both, |verdict| verdict.handoff_us).await?;
    Ok(medians.ours_by_other(Unit::Micros))
}

/// The gain from passing the lock on within a process.
pub(super) async fn cohort_vs_direct(setting: Setting) -> Result<Measured, BoxError> {
    let both = (
        contest(Strategy::Cohort, 4, 16),
        contest(Strategy::Direct, 4, 16),
    );
    let medians = compare(setting, both, |verdict| verdict.handoffs_per_second).await?;
    Ok(medians.ours_by_other(Unit::PerSecond))
}

/// The less fair of the two. The turns of each waiter are counted, so there have to be many.
pub(super) async fn fairness(setting: Setting) -> Result<Measured, BoxError> {
    let with = |strategy| Contest {
        watched: Duration::from_secs(1),
        ..contest(strategy, 4, 16)
    };
    let both = (with(Strategy::Direct), with(Strategy::Cohort));
    let medians = compare(setting, both, |verdict| verdict.jain).await?;
    Ok(medians.lesser(Unit::One))
}
