//! Several resources in one step.

use std::sync::Arc;

use lock_core::{Attempt, Error, backend::AttemptRef};

use super::{Given, Looked, Step, Table};
use crate::service::asker::Asker;

impl Table {
    /// Grants all resources, or changes nothing. Waiters in queues are bypassed.
    pub(in crate::service) fn together(
        &mut self,
        askers: &[Arc<Asker>],
        step: &mut Step<'_>,
    ) -> Result<Attempt<Vec<Given>>, Error> {
        let mut longest = None;
        for asker in askers {
            let AttemptRef {
                resource,
                holder,
                id,
            } = asker.attempt();
            let mut visit = self.visit(resource, step);
            visit.settle(None);
            visit.must_not_be_buried(*holder, *id)?;
            visit.tokens.check_floor(asker.request().floor)?;
            let held = visit.resource.held.as_ref();
            let other = held.filter(|held| held.holder != *holder);
            longest = longest.max(other.map(|held| held.left(visit.step.now)));
        }
        if let Some(retry_after) = longest {
            return Ok(Attempt::Held { retry_after });
        }
        self.has_tokens(askers)?;
        let granted = askers.iter().map(|asker| {
            let mut visit = self.visit(&asker.attempt().resource, step);
            match visit.join(asker, false) {
                Some(Looked::Granted(given)) => Ok(given),
                Some(Looked::Offered(Given { token, .. })) => {
                    let ttl = asker.request().ttl;
                    visit.confirm(asker.attempt().holder, token, ttl);
                    let left = ttl.get();
                    Ok(Given { token, left })
                }
                _ => visit.grant(asker),
            }
        });
        granted.collect::<Result<_, _>>().map(Attempt::Granted)
    }

    /// Whether the counter has a token for each resource.
    fn has_tokens(&self, askers: &[Arc<Asker>]) -> Result<(), Error> {
        let mut tokens = self.tokens;
        for asker in askers {
            tokens.draw(0, asker.request().floor)?;
        }
        Ok(())
    }
}
