//! Leaders.

use std::time::Duration;

use fenced_jobs::Jobs;
use fenced_store::{FencedGuard, FencedLockError};
use lock_core::{ResourceName, Term, backend::Runtime};

use super::{Me, Worked, me::named};
use crate::{
    judge::act::{Act, How},
    plan::Work,
    store::Ledger,
};

/// How long a candidate campaigns and leads at most.
const LONGEST: Duration = Duration::from_secs(20);

/// How many writes a leader has to do.
const ROUNDS: u32 = 3;

/// Campaigns, and leads for a few rounds of work, in as many terms as that takes.
pub(super) async fn lead<S: Ledger>(me: &Me<S>, plan: Work) -> Worked {
    let name = format!("l{}", plan.on);
    let resource = named(&format!("lead:{name}"));
    let lead = me.fenced().lead(&name).ttl(me.ttl());
    let (me, mut rounds) = (me.clone(), 0);
    let runtime = me.process().clone();
    let section = async move |term: &Term<FencedGuard<S>>| {
        if rounds > 0 {
            me.saw("leader in a further term");
        }
        while rounds < ROUNDS {
            rounds += 1;
            me.at_place(u8::try_from(rounds).unwrap_or(0), plan).await;
            round(&me, term, &resource, plan.takes / ROUNDS).await?;
        }
        Ok::<_, FencedLockError>(())
    };
    let led = lead.run_through(|error: &FencedLockError| error.may_pass(), section);
    let runtime: &dyn Runtime = &runtime;
    match runtime.timeout(LONGEST, led).await {
        Some(led) => led.map(|()| How::Done),
        None => Ok(How::Held),
    }
}

/// One write of a leader.
async fn round<S: Ledger>(
    me: &Me<S>,
    term: &FencedGuard<S>,
    resource: &ResourceName,
    takes: Duration,
) -> Result<(), FencedLockError> {
    me.think(takes).await;
    me.act(Act::Leads {
        resource: resource.as_str().to_owned(),
        token: term.token().get(),
        left: term.remaining().unwrap_or_default(),
    });
    let mut tx = me.begin(term).await?;
    let write = me.new_write();
    me.write(&mut tx, resource.as_str(), resource, write, Duration::ZERO)
        .await?;
    me.writes(write, term.token().get());
    let committed = tx.commit().await;
    me.wrote(write, &committed, |error| error);
    Ok(committed.map(drop)?)
}
