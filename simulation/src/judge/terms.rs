//! Leaders: terms rise, one leader leads at a time, and it steps down early.

use std::collections::BTreeMap;

use super::{Finding, Promised, act::Act, leases::Leases};

/// A leader steps down when less than this part of its ttl is left.
const MARGIN: u32 = 6;

#[derive(Debug, Default)]
pub(super) struct Terms {
    /// The newest term that was at work.
    newest: BTreeMap<String, u64>,
}

impl Terms {
    pub(super) fn act(&mut self, promised: Promised, leases: &Leases, act: &Act) -> Finding {
        let Act::Leads {
            resource,
            token,
            left,
        } = act
        else {
            return None;
        };
        let newest = self.newest.entry(resource.clone()).or_default();
        let before = std::mem::replace(newest, std::cmp::max(*newest, *token));
        if !promised.leases || leases.was_forced(resource, *token) {
            return None;
        }
        if *token < before {
            let what = format!("term {token} of {resource} is at work after term {before}");
            return Some(("leader-deposed", what));
        }
        (*left < promised.ttl / MARGIN).then(|| {
            let what = format!("term {token} of {resource} is at work with {left:?} left");
            ("leader-steps-down", what)
        })
    }
}
