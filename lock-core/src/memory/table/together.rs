use std::time::Duration;

use super::{Refusal, Resource, Table, held::Held};
use crate::{AcquireRequest, Attempt, Grant, Moment};

/// Several resources in one step.
impl Table {
    pub(in crate::memory) fn acquire_together(
        &mut self,
        requests: &[AcquireRequest],
        now: Moment,
        unix_time: Duration,
    ) -> Result<Attempt<Vec<Grant>>, Refusal> {
        for AcquireRequest { attempt, floor, .. } in requests {
            self.serve(&attempt.resource, now);
            if self.tombstones.forbids(attempt) {
                return Err(Refusal::Ended);
            }
            self.counter.check_floor(*floor, unix_time)?;
        }
        let others = requests.iter().filter_map(|request| self.other(request));
        if let Some(last) = others.max() {
            let retry_after = last.since(now);
            return Ok(Attempt::Held { retry_after });
        }
        self.grant_all(requests, now).map(Attempt::Granted)
    }

    /// Until when another holder keeps the resource, if one does.
    fn other(&self, request: &AcquireRequest) -> Option<Moment> {
        let entry = self.resources.get(&request.attempt.resource)?;
        let ours = entry.held.holder == request.attempt.holder;
        (!ours).then_some(entry.held.deadline)
    }

    /// Each held resource is held by the caller.
    fn grant_all(
        &mut self,
        requests: &[AcquireRequest],
        now: Moment,
    ) -> Result<Vec<Grant>, Refusal> {
        let before = self.counter;
        let mut drawn = Vec::new();
        for request in requests {
            let entry = self.resources.get(&request.attempt.resource);
            let token = match entry {
                Some(_) => None,
                None => match self.counter.draw(request.floor) {
                    Ok(token) => Some(token),
                    Err(refusal) => {
                        self.counter = before;
                        return Err(refusal);
                    }
                },
            };
            drawn.push(token);
        }
        let grants = requests.iter().zip(drawn).filter_map(|(request, token)| {
            let resource = &request.attempt.resource;
            match token {
                Some(token) => {
                    let held = Held::new(request, token, now);
                    let grant = held.grant(now);
                    self.resources
                        .insert(resource.clone(), Resource::held_by(held));
                    Some(grant)
                }
                None => Some(self.held_mut(resource)?.replay(request.attempt.id, now)),
            }
        });
        Ok(grants.collect())
    }
}
