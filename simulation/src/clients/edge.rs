//! Requests to a service behind an edge.

use std::{future::pending, time::Duration};

use bytes::Bytes;
use fenced_http::{
    FENCING_ACCEPTED,
    client::{Advice, Refusal},
};
use http::{HeaderMap, HeaderName, Response};
use lock_core::{LeaseGuard, Released, Sequencer};

use super::{
    Me, Worked,
    me::Releases,
    presenting::{Presented, Wish},
};
use crate::{
    edge::{Body, WRITE_ID},
    judge::act::{Act, How, WorkId},
    plan::Work,
    store::Ledger,
};

/// How long a client waits for an answer.
const TIMEOUT: Duration = Duration::from_secs(3);

/// How often a client sends the same request at most.
const TRIES: u64 = 3;

/// How long a client pauses before another try, if the service does not say.
const PAUSE: Duration = Duration::from_millis(100);

/// Acquires, has a service write under the token, and releases.
pub(super) async fn requests<S: Ledger>(me: &Me<S>, id: WorkId, plan: Work) -> Worked {
    let resource = me.resource(plan.on);
    me.asks(id, &resource);
    let wish = Wish::of(plan.choice);
    if wish.is_claimed {
        let guard = me.acquire(&resource, plan).await?;
        me.holds(id, &guard, true, false);
        under(me, id, guard, wish, plan).await
    } else {
        let guard = me.lease(&resource, plan).await?;
        me.holds(id, &guard, false, false);
        under(me, id, Box::new(guard), wish, plan).await
    }
}

async fn under<S: Ledger>(
    me: &Me<S>,
    id: WorkId,
    guard: impl Releases,
    wish: Wish,
    plan: Work,
) -> Worked {
    me.think(plan.takes / 2).await;
    me.still_holds(&guard);
    let sequencer = guard.sequencer().clone();
    let mut calls = Calls {
        me,
        id,
        made: 0,
        takes: [plan.takes / 4; 2],
    };
    let how = match wish.flaw {
        None => calls.until_done(&guard, wish).await?,
        Some(_) => calls.refused(&sequencer, wish).await,
    };
    me.still_holds(&guard);
    if plan.choice & 4 == 0 && me.release(guard, false).await? == Released::Released {
        // Nothing has to refuse this repeated request, until the next holder claims.
        if wish.is_repeated && calls.once(&sequencer, wish).await == Some(Ok(())) {
            me.saw("request accepted after a release");
        }
    }
    Ok(how)
}

/// The requests of one piece of work.
struct Calls<'a, S: Ledger> {
    me: &'a Me<S>,
    id: WorkId,
    made: u64,
    takes: [Duration; 2],
}

/// The reading of an answer.
type Read = Result<(), Option<Advice>>;

impl<S: Ledger> Calls<'_, S> {
    /// Does what the service advises, until the write is made.
    async fn until_done(&mut self, guard: &LeaseGuard, wish: Wish) -> Worked {
        while self.made < TRIES {
            match self.once(guard.sequencer(), wish).await {
                Some(Ok(())) => return Ok(How::Done),
                Some(Err(Some(Advice::Retry { after }))) => {
                    self.me.saw("request to be sent again");
                    self.me.think(after.unwrap_or(PAUSE)).await;
                }
                Some(Err(Some(Advice::ClaimFirst))) => {
                    self.me.saw("request before its claim");
                    self.claim(guard.sequencer()).await?;
                }
                Some(Err(Some(Advice::AcquireAgain))) => return Ok(How::Fenced),
                _ => return Ok(How::Failed),
            }
        }
        Ok(How::Failed)
    }

    async fn claim(&self, sequencer: &Sequencer) -> Result<(), fenced_store::FenceError> {
        self.me.fenced().store().claim(sequencer).await?;
        self.me.act(Act::Claimed {
            resource: sequencer.resource().as_str().to_owned(),
            token: sequencer.token().get(),
        });
        Ok(())
    }

    /// Sends a request that has to be refused.
    async fn refused(&mut self, sequencer: &Sequencer, wish: Wish) -> How {
        match self.once(sequencer, wish).await {
            Some(Err(Some(_))) => {
                self.me.saw("request with a flaw refused");
                How::Fenced
            }
            _ => How::Failed,
        }
    }

    /// Sends one request, and reads its answer. `None` if there is none.
    async fn once(&mut self, sequencer: &Sequencer, wish: Wish) -> Option<Read> {
        let (me, number) = (self.me, u64::from(self.id) * (TRIES + 2) + self.made);
        self.made += 1;
        let body = Body {
            request: me.new_write(),
            takes: self.takes,
        };
        let presented = Presented::new(me, sequencer, wish);
        me.act(Act::Requests {
            request: body.request,
            token: presented.token(),
            flaw: wish.flaw,
            door: wish.door,
        });
        let answered = me.edge().send(me.number(), number, presented.request(body));
        let answered = async {
            match answered.await {
                Ok(answer) => answer,
                // The request or its answer was lost.
                Err(_) => pending().await,
            }
        };
        let Some(answer) = me.runtime().timeout(TIMEOUT, answered).await else {
            me.saw("request without an answer");
            return None;
        };
        Some(self.read(body, &presented, &answer))
    }

    /// Reads an answer as `fenced_http`'s sender does.
    fn read(&self, body: Body, presented: &Presented, answer: &Response<Bytes>) -> Read {
        let (status, headers) = (answer.status(), answer.headers());
        let is_success = status.is_success();
        let is_believed = is_success && presented.credential.believe(status, headers).is_ok();
        self.me.act(Act::Answered {
            request: body.request,
            write: number(headers, &WRITE_ID),
            status: status.as_u16(),
            accepted: number(headers, &FENCING_ACCEPTED),
            is_believed,
        });
        match (is_success, is_believed) {
            (true, true) => Ok(()),
            (true, false) => {
                self.me.saw("success that was not fenced");
                Err(None)
            }
            _ => Err(Some(Refusal::new(status, headers, answer.body()).advice())),
        }
    }
}

fn number(headers: &HeaderMap, name: &HeaderName) -> Option<u64> {
    headers.get(name)?.to_str().ok()?.parse().ok()
}
