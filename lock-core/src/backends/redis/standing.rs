//! The service as a whole: all its shards are asked or told the same.

use futures_util::{StreamExt, TryStreamExt, stream};

use super::{
    answers::StandingWord,
    call::Call,
    scripts::{REINSTATE, RETIRE, STANDING, Script},
    service::{Service, refused},
};
use crate::{Error, FencingToken, InitialToken, Operation, Standing};

/// So many shards at a time.
const AT_A_TIME: usize = 16;

impl Service {
    pub(super) async fn standing(&self) -> Result<Standing, Error> {
        self.of_all_shards(Operation::Standing, &STANDING, None)
            .await
    }

    pub(super) async fn retire(&self) -> Result<Standing, Error> {
        self.of_all_shards(Operation::Retire, &RETIRE, None).await
    }

    pub(super) async fn reinstate(&self, floor: FencingToken) -> Result<Standing, Error> {
        self.of_all_shards(Operation::Reinstate, &REINSTATE, Some(floor))
            .await
    }

    /// All of them are retired, or it is not; the last token is the greatest of all.
    async fn of_all_shards(
        &self,
        operation: Operation,
        script: &'static Script,
        floor: Option<FencingToken>,
    ) -> Result<Standing, Error> {
        // Counters may begin here: see `Looking::look`.
        self.nodes.agree(operation).await?;
        let shards = stream::iter(0..self.keys.shards());
        let words = shards
            .map(|shard| self.of_shard(shard, operation, script, floor))
            .buffer_unordered(AT_A_TIME);
        let all = words.try_fold((true, 0), |(retired, last), word| async move {
            match word {
                StandingWord::Serving { last: here } => Ok((false, std::cmp::max(last, here))),
                StandingWord::Retired { last: here } => Ok((retired, std::cmp::max(last, here))),
                StandingWord::Refused(refusal) => Err(refused(refusal, operation)),
            }
        });
        let (retired, last) = all.await?;
        Ok(Standing {
            retired,
            last: FencingToken::new(last).ok(),
        })
    }

    async fn of_shard(
        &self,
        shard: u16,
        operation: Operation,
        script: &'static Script,
        floor: Option<FencingToken>,
    ) -> Result<StandingWord, Error> {
        let mut call = Call::new(script, [self.keys.counter(shard)]);
        match self.initial {
            InitialToken::Clock => call.arg("raise"),
            InitialToken::At(token) => call.arg(token.get()),
        };
        call.rare_args([floor.map(|floor| floor.to_string())]);
        self.nodes
            .run(shard, operation, &call, StandingWord::parse)
            .await
    }
}
