//! The service as a whole: all its shards are asked or told the same.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    KIND,
    answers::StandingWord,
    call::Call,
    scripts::{REINSTATE, RETIRE, STANDING, Script},
    service::{Service, refused},
};
use crate::{Error, ErrorKind, FencingToken, InitialToken, Operation, Standing};

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

    /// All of them are retired, or it is not; the last token is the greatest of all.
    async fn of_all_shards(
        &self,
        operation: Operation,
        order: Option<Order>,
    ) -> Result<Standing, Error> {
        // Counters may begin here: see `Looking::look`.
        self.nodes.agree(operation).await?;
        let shards = stream::iter(0..self.keys.shards());
        let stand = shards
            .map(async |shard| match order {
                None => self.look_at_shard(shard, operation).await,
                Some(order) => self.tell_shard(shard, operation, order).await,
            })
            .buffer_unordered(AT_A_TIME);
        let all = stand.try_fold((true, 0), async |(retired, last), shard| {
            Ok((retired && shard.retired, std::cmp::max(last, shard.last)))
        });
        let (retired, last) = all.await?;
        Ok(Standing {
            retired,
            last: FencingToken::new(last).ok(),
        })
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

    fn standing_call(&self, shard: u16, script: &'static Script) -> Call {
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

fn unsettled(operation: Operation) -> Error {
    Error::new(ErrorKind::Unavailable, operation, KIND)
        .because("others retire or reinstate it each time we looked")
}
