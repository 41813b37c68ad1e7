//! One process of a contest.

use std::{
    io::{self, Write},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines, Stdin},
    task::JoinSet,
};

use super::{
    Job, Strategy, contender::Contender, fair_list::FairList, ours::Ours, retry::Retry,
    theirs::Theirs, verdict::Hold,
};
use crate::{figure::BoxError, monotonic::now_ns};

/// The line that a process prints when it is connected.
pub(super) const READY: &str = "ready";

/// Runs one process of a contest, and prints its observations.
pub(crate) fn play(job: &str) -> Result<(), BoxError> {
    let job: Job = serde_json::from_str(job)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let holds = runtime.block_on(async {
        match job.strategy {
            Strategy::Direct | Strategy::Cohort => {
                play_with(Ours::connect(&job).await?, &job).await
            }
            Strategy::Retry => play_with(Retry::connect(&job).await?, &job).await,
            Strategy::FairList => play_with(FairList::connect(&job).await?, &job).await,
            Strategy::Rslock => play_with(Theirs::new(&job), &job).await,
        }
    })?;
    serde_json::to_writer(io::stdout().lock(), &holds)?;
    Ok(())
}

async fn play_with<C: Contender>(contender: C, job: &Job) -> Result<Vec<Hold>, BoxError> {
    let contender = Arc::new(contender);
    // The first process keeps everybody waiting until all are in line.
    let gatekeeper = job.waiters;
    let gate = match job.process {
        0 => Some(contender.acquire(gatekeeper).await?),
        _ => None,
    };
    println!("{READY}");
    io::stdout().flush()?;

    let mut commands = BufReader::new(tokio::io::stdin()).lines();
    commands.next_line().await?;
    let over = Arc::new(AtomicBool::new(false));
    let mut waiters = JoinSet::new();
    for waiter in 0..job.waiters {
        let (contender, over) = (Arc::clone(&contender), Arc::clone(&over));
        waiters.spawn(take_turns(contender, waiter, job.clone(), over));
    }
    if let Some(lease) = gate {
        commands.next_line().await?;
        contender.release(gatekeeper, lease).await?;
    }
    until_the_end(&mut commands).await?;
    over.store(true, Ordering::Relaxed);
    let mut holds = Vec::new();
    while let Some(done) = waiters.join_next().await {
        holds.extend(done??);
    }
    Ok(holds)
}

async fn until_the_end(commands: &mut Lines<BufReader<Stdin>>) -> io::Result<()> {
    while commands.next_line().await?.is_some() {}
    Ok(())
}

/// One waiter: it asks again as soon as it has given the resource back, until the contest is over.
async fn take_turns<C: Contender>(
    contender: Arc<C>,
    waiter: u32,
    job: Job,
    over: Arc<AtomicBool>,
) -> Result<Vec<Hold>, BoxError> {
    let mut holds = Vec::new();
    while !over.load(Ordering::Relaxed) {
        let lease = contender.acquire(waiter).await?;
        let (acquired_ns, told_ago) = (now_ns(), C::told_ago(&lease));
        let told_ago = u64::try_from(told_ago.as_nanos()).unwrap_or(u64::MAX);
        if !job.hold.is_zero() {
            tokio::time::sleep(job.hold).await;
        }
        let token = C::token(&lease);
        let released_ns = now_ns();
        holds.push(Hold {
            token,
            acquired_ns,
            told_ns: acquired_ns.saturating_sub(told_ago),
            released_ns,
            waiter: job.process * job.waiters + waiter,
        });
        contender.release(waiter, lease).await?;
        if !job.think.is_zero() {
            tokio::time::sleep(job.think).await;
        }
    }
    Ok(holds)
}
