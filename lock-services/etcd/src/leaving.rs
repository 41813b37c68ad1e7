use prost::Message;

use super::{
    acquisition::Acquisition,
    in_line::{Ahead, InLine},
    record::{Floor, State},
    service::{TRIES, crowded},
    wire::{Compare, Op, RangeRequest, TxnRequest},
};
use lock_core::{Error, Operation};

impl Acquisition<'_> {
    /// Gives the place back to get one with a greater token, at the end of the line. It is gone
    /// when this returns.
    ///
    /// Nobody was told of it, not even another attempt, because all of them see that its token is
    /// too small. The floor is raised in the same step, while we hold the resource, so no other
    /// holder's token comes to lie between.
    pub(super) async fn leave_for_more(
        &mut self,
        place: &InLine,
        seen: &Ahead,
    ) -> Result<(), Error> {
        let key = self.service.keys.floor();
        for _ in 0..TRIES {
            let floor = self.service.known_floor().await?;
            let memory = self.service.memory(self.length()).await;
            let memory = memory.map_err(|failure| self.failed(failure))?;
            let found = self.service.find(&self.names).await;
            let found = found.map_err(|failure| self.failed(failure))?;
            let present = found.place.as_ref();
            if present.is_none_or(|present| present.created != place.created) {
                // It was given back by this request, sent twice, or by another attempt.
                return Ok(());
            }
            let enough = Floor::for_token(seen.least, seen.revision);
            let raised = Floor {
                value: std::cmp::max(floor.value, enough),
                ..floor
            };
            let mark = found.memory().in_state(State::Idle);
            let mut txn = TxnRequest {
                compare: found.unchanged(&self.names).into(),
                success: vec![
                    Op::delete(&found.key),
                    Op::put(&self.names.mark, mark.encode_to_vec(), memory),
                ],
                failure: vec![Op::range(RangeRequest::key(&key))],
            };
            txn.compare.push(Compare::changed(&key, floor.changed));
            if raised != floor {
                txn.success.push(Op::put(&key, raised.text(), 0));
            }
            let answer = match self.service.txn(&txn).await {
                Ok(answer) => answer,
                Err(failure) if failure.no_lease() => {
                    self.service.forget_memories();
                    continue;
                }
                Err(failure) => return Err(self.failed(failure)),
            };
            if answer.succeeded {
                // The mark and the floor are read again with the next entry.
                return Ok(());
            }
            let floor = answer.ranges().flat_map(|range| range.kvs).next();
            self.service.note_floor(floor.as_ref())?;
        }
        Err(crowded(Operation::Acquire, &self.request.attempt.resource))
    }
}
