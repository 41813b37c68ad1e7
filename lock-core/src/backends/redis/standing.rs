//! The service as a whole: all its shards are asked or told the same.

use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::{StreamExt, stream};
use redis::Script;

use super::{
    KIND,
    answers::StandingWord,
    call::Call,
    scripts::{REINSTATE, RETIRE, STANDING},
    service::{Service, refused},
};
use crate::{Error, ErrorKind, FencingToken, InitialToken, Operation, Outcome, Standing};

/// So many shards at a time.
const AT_A_TIME: usize = 16;

/// So often a shard is looked at anew because others tell it to retire, or to serve, too.
const TRIES: usize = 8;

/// What a shard is told.
#[derive(Clone, Copy)]
enum Order {
    Retire,
    Reinstate(FencingToken),
}

/// How one shard stands.
struct ShardStanding {
    retired: bool,
    last: u64,
    told: u64,
}

impl Service {
    pub(super) async fn standing(&self) -> Result<Standing, Error> {
        self.of_all_shards(Operation::Standing, None).await
    }

    pub(super) async fn retire(&self) -> Result<Standing, Error> {
        self.of_all_shards(Operation::Retire, Some(Order::Retire))
            .await
    }

    pub(super) async fn reinstate(&self, floor: FencingToken) -> Result<Standing, Error> {
        self.of_all_shards(Operation::Reinstate, Some(Order::Reinstate(floor)))
            .await
    }

    /// All of them are retired, or it is not; the last token is the greatest of all; and a floor is
    /// for all of them.
    async fn of_all_shards(
        &self,
        operation: Operation,
        order: Option<Order>,
    ) -> Result<Standing, Error> {
        // Counters may begin here: see `Looking::look`.
        self.nodes.agree(operation).await?;
        let has_failed = AtomicBool::new(false);
        let stand = stream::iter(0..self.keys.shards()).map(async |shard| {
            // Those under way are waited for: what becomes of them shows in the error.
            if has_failed.load(Ordering::Relaxed) {
                return None;
            }
            let stands = match order {
                None => self.look_at_shard(shard, operation).await,
                Some(order) => self.tell_shard(shard, operation, order).await,
            };
            has_failed.fetch_or(stands.is_err(), Ordering::Relaxed);
            Some(stands)
        });
        let stand: Vec<_> = stand.buffer_unordered(AT_A_TIME).collect().await;
        let all = all_or_error(stand.into_iter().flatten(), order.is_some())?;
        let last = all.iter().map(|shard| shard.last).max();
        let greatest_floors = all.iter().map(|shard| self.greatest_floor(shard));
        Ok(Standing {
            retired: all.iter().all(|shard| shard.retired),
            last: last.and_then(|last| FencingToken::new(last).ok()),
            greatest_floor: greatest_floors
                .min()
                .and_then(|floor| FencingToken::new(floor).ok()),
        })
    }

    /// The scripts go by the server's clock, which is not far from this one. The next token is
    /// always plausible.
    fn greatest_floor(&self, shard: &ShardStanding) -> u64 {
        let greatest = self
            .initial
            .greatest_floor(shard.last, self.clock.unix_time());
        std::cmp::max(greatest, shard.last + 1)
    }

    /// Each time with how often it was told something when it was looked at: a request that arrives
    /// late, after the next one was answered, does nothing.
    async fn tell_shard(
        &self,
        shard: u16,
        operation: Operation,
        order: Order,
    ) -> Result<ShardStanding, Error> {
        for _ in 0..TRIES {
            let seen = self.look_at_shard(shard, operation).await?;
            let (script, floor) = match order {
                Order::Retire => (&*RETIRE, None),
                Order::Reinstate(floor) => (&*REINSTATE, Some(floor)),
            };
            let mut call = self.standing_call(shard, script);
            call.arg(seen.told);
            call.rare_args([floor.map(|floor| floor.to_string())]);
            if let Some(stands) = self.ask_shard(shard, operation, &call).await? {
                return Ok(stands);
            }
        }
        Err(unsettled(operation))
    }

    async fn look_at_shard(
        &self,
        shard: u16,
        operation: Operation,
    ) -> Result<ShardStanding, Error> {
        let call = self.standing_call(shard, &STANDING);
        let stands = self.ask_shard(shard, operation, &call).await?;
        stands.ok_or_else(|| unsettled(operation))
    }

    fn standing_call(&self, shard: u16, script: &Script) -> Call {
        let mut call = Call::new(script, [self.keys.counter(shard), self.keys.told(shard)]);
        match self.initial {
            InitialToken::Clock => call.arg("raise"),
            InitialToken::At(token) => call.arg(token.get()),
        };
        call
    }

    /// None if it was told something else since.
    async fn ask_shard(
        &self,
        shard: u16,
        operation: Operation,
        call: &Call,
    ) -> Result<Option<ShardStanding>, Error> {
        let answer = self.nodes.run(shard, operation, call, StandingWord::parse);
        match answer.await? {
            StandingWord::Stands {
                retired,
                last,
                told,
            } => Ok(Some(ShardStanding {
                retired,
                last,
                told,
            })),
            StandingWord::Late => Ok(None),
            StandingWord::Refused(refusal) => Err(refused(refusal, operation)),
        }
    }
}

/// How all of them stand, or the first error. If some were told something, or may have been, then
/// that is not undone by another one that could not be told.
fn all_or_error(
    shards: impl Iterator<Item = Result<ShardStanding, Error>>,
    is_order: bool,
) -> Result<Vec<ShardStanding>, Error> {
    let (mut all, mut failed) = (Vec::new(), Vec::new());
    for shard in shards {
        match shard {
            Ok(stands) => all.push(stands),
            Err(error) => failed.push(error),
        }
    }
    let is_unknown = |error: &Error| error.outcome() == Outcome::Unknown;
    let is_told = is_order && (!all.is_empty() || failed.iter().any(is_unknown));
    match failed.into_iter().next() {
        None => Ok(all),
        Some(error) if is_told => Err(error.outcome_unknown()),
        Some(error) => Err(error),
    }
}

fn unsettled(operation: Operation) -> Error {
    Error::not_applied(ErrorKind::Unavailable, operation, KIND)
        .because("others retire or reinstate it each time we looked")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_shards_were_told_shows_in_the_error_of_another_one() {
        let told = || {
            Ok(ShardStanding {
                retired: true,
                last: 1,
                told: 1,
            })
        };
        let failed = || Err(unsettled(Operation::Retire));
        let in_doubt = || Err(unsettled(Operation::Retire).outcome_unknown());
        let outcome = |shards: Vec<Result<_, _>>, is_order| {
            let all = all_or_error(shards.into_iter(), is_order);
            all.err().map(|error| error.outcome())
        };
        assert_eq!(outcome(vec![told(), told()], true), None);
        for half in [vec![told(), failed()], vec![failed(), in_doubt()]] {
            assert_eq!(outcome(half, true), Some(Outcome::Unknown));
        }
        for nothing in [vec![failed(), failed()], vec![failed()]] {
            assert_eq!(outcome(nothing, true), Some(Outcome::NotApplied));
        }
        // A look changes nothing.
        assert_eq!(
            outcome(vec![told(), failed()], false),
            Some(Outcome::NotApplied)
        );
    }
}
