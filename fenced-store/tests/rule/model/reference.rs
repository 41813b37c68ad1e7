//! The store as the documentation describes it: no database, no concurrency.

use std::{cmp::Ordering, collections::BTreeMap};

use fenced_store::FenceError;
use lock_core::{Issuer, Sequencer};

pub(super) struct Reference {
    balance: i64,
    /// The grant that may write, per resource.
    marks: BTreeMap<String, Sequencer>,
}

impl Reference {
    pub(super) const fn new(balance: i64) -> Self {
        Self {
            balance,
            marks: BTreeMap::new(),
        }
    }

    pub(super) const fn balance(&self) -> i64 {
        self.balance
    }

    pub(super) fn current(&self, resource: &str) -> Option<&Sequencer> {
        self.marks.get(resource)
    }

    pub(super) fn claim(&mut self, grant: &Sequencer) -> Result<(), FenceError> {
        if grant.issuer().as_str() != "redis" {
            return Err(wrong_issuer(grant));
        }
        match self.enter(grant) {
            Err(FenceError::NotClaimed { .. }) => {
                let resource = grant.resource().to_string();
                self.marks.insert(resource, grant.clone());
                Ok(())
            }
            entered => entered,
        }
    }

    pub(super) fn enter(&self, grant: &Sequencer) -> Result<(), FenceError> {
        let (resource, presented) = (grant.resource().clone(), grant.token());
        let Some(mark) = self.current(resource.as_str()) else {
            return Err(FenceError::not_claimed(resource, presented));
        };
        if mark.issuer() != grant.issuer() {
            return Err(wrong_issuer(grant));
        }
        match presented.cmp(&mark.token()) {
            Ordering::Greater => Err(FenceError::not_claimed(resource, presented)),
            Ordering::Less => Err(FenceError::stale(resource, presented, mark.token())),
            Ordering::Equal if mark == grant => Ok(()),
            Ordering::Equal => Err(FenceError::duplicate_token(resource, presented)),
        }
    }

    /// A grant that settles was claimed before.
    pub(super) fn settle(&self, grant: &Sequencer) -> Result<(), FenceError> {
        self.enter(grant).map_err(|error| match error {
            FenceError::NotClaimed {
                resource,
                presented,
                ..
            } => FenceError::mark_lost(resource, presented),
            error => error,
        })
    }

    /// A transaction, or a single write, that adds 1 to the balance.
    pub(super) fn write(&mut self, grants: &[Sequencer], commits: bool) -> Result<(), FenceError> {
        let mut sorted: Vec<_> = grants.iter().collect();
        sorted.sort_by_key(|grant| grant.resource().clone());
        if let Some(pair) = sorted
            .windows(2)
            .find(|pair| pair[0].resource() == pair[1].resource())
        {
            let resource = pair[0].resource().clone();
            return Err(FenceError::RepeatedResource { resource });
        }
        sorted.iter().try_for_each(|grant| self.enter(grant))?;
        self.balance += i64::from(commits);
        Ok(())
    }
}

fn wrong_issuer(grant: &Sequencer) -> FenceError {
    let current = Issuer::new("redis").unwrap();
    FenceError::wrong_issuer(grant.resource().clone(), grant.issuer().clone(), current)
}
