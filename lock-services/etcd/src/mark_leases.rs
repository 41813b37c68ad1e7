use std::{collections::HashMap, sync::Arc, time::Duration};

use futures_util::{
    FutureExt,
    future::{BoxFuture, Shared, WeakShared},
};

use super::{
    client::Client,
    failure::Failure,
    grant::{Granted, grant},
    memories::Memories,
};
use lock_core::Moment;

/// The leases that marks are attached to, and those that are being asked for.
#[derive(Debug, Default)]
pub(super) struct MarkLeases {
    pub(super) known: Memories,
    /// The requests, by the length. One goes away when all who wait for it were dropped.
    asked_for: HashMap<Duration, WeakShared<Asking>>,
}

/// Brings a lease and its end.
pub(super) type Asking = BoxFuture<'static, Result<(i64, Moment), Failure>>;

impl MarkLeases {
    /// The lease of that length that is already being asked for, if it will last until then;
    /// otherwise another one.
    pub(super) fn ask(
        &mut self,
        length: Duration,
        until: Moment,
        client: &Arc<Client>,
    ) -> Shared<Asking> {
        let present = self.asked_for.get(&length).and_then(WeakShared::upgrade);
        let is_good = |asking: &Shared<Asking>| match asking.peek() {
            None => true,
            Some(Ok((_, end))) => *end >= until,
            Some(Err(_)) => false,
        };
        if let Some(asking) = present.filter(is_good) {
            return asking;
        }
        let asking = ask(Arc::clone(client), length).boxed().shared();
        if let Some(present) = asking.downgrade() {
            self.asked_for.insert(length, present);
        }
        asking
    }
}

async fn ask(client: Arc<Client>, length: Duration) -> Result<(i64, Moment), Failure> {
    loop {
        let id = std::cmp::max(rand::random::<i64>() & i64::MAX, 1);
        if let Granted::New { asked, ttl } = grant(&client, id, length).await? {
            return Ok((id, asked + ttl));
        }
    }
}
