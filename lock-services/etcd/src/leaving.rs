use prost::Message;

use super::{
    attempt::Attempt,
    queued::{Ahead, Queued},
    record::{Floor, State},
    service::insist,
    wire::{Compare, Op, RangeRequest, TxnRequest},
};
use lock_core::Error;

impl Attempt<'_> {
    /// Gives the entry back, so that the attempt can take an entry with a greater token, at the end
    /// of the queue. The entry is gone when this returns.
    ///
    /// No caller knows of the entry, not even the caller of another attempt, because each attempt
    /// sees that the token is too small. The floor is raised in the same step, while this entry
    /// holds the resource, so no other holder's token can lie in between.
    pub(super) async fn leave_for_more(&self, entry: &Queued, seen: &Ahead) -> Result<(), Error> {
        let key = self.service.keys.floor();
        let leave = || async {
            let floor = self.service.known_floor().await?;
            let tombstones = self.service.tombstone_lease_of_ended().await?;
            let found = self.service.find(&self.names).await?;
            let present = found.entry.as_ref();
            let Some(present) = present.filter(|present| present.created == entry.created) else {
                // The entry was given back by another copy of this request, or by another attempt.
                return Ok(Some(()));
            };
            let enough = Floor::for_token(seen.least, seen.revision);
            let raised = Floor {
                value: std::cmp::max(floor.value, enough),
                ..floor
            };
            let tombstone = found.remembered().in_state(State::Idle);
            let mut txn = TxnRequest {
                compare: found.unchanged(&self.names).into(),
                success: vec![
                    Op::delete(&self.names.entry),
                    Op::put(&self.names.tombstone, tombstone.encode_to_vec(), tombstones),
                ],
                failure: vec![Op::range(RangeRequest::key(&key))],
            };
            txn.compare.push(Compare::changed(&key, floor.changed));
            if raised != floor {
                txn.success.push(Op::put(&key, raised.text(), 0));
            }
            let Some(answer) = self.service.bury(&txn).await? else {
                return Ok(None);
            };
            if answer.succeeded {
                self.service
                    .entry_ended(&self.names, present.lease, answer.revision());
                // The tombstone and the floor are read again with the next entry.
                return Ok(Some(()));
            }
            let floor = answer.ranges().flat_map(|range| range.kvs).next();
            self.service.note_floor(floor.as_ref())?;
            Ok(None)
        };
        insist(leave).await
    }
}
