//! Random requests to the store.

use proptest::{collection::vec, prelude::*};

/// How many resources a history has.
pub(super) const RESOURCES: usize = 3;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Claim(Which),
    Settle(Which),
    Write { grants: Vec<Which>, end: End },
}

/// The grant of a request.
#[derive(Clone, Copy, Debug)]
pub(super) enum Which {
    /// The grant that may write.
    Current { resource: usize },
    /// Any grant: a stale one, a replay, one that shares its token with another grant, or one of
    /// another lock service.
    Certain {
        resource: usize,
        token: u64,
        holder: usize,
        foreign: bool,
    },
}

/// The end of a transaction that has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Commit,
    UndoneSavepoint,
    Rollback,
    Drop,
    Single,
}

pub(super) fn history() -> impl Strategy<Value = Vec<Step>> {
    vec(step(), 10..40)
}

fn step() -> impl Strategy<Value = Step> {
    let grants = prop_oneof![
        3 => vec(which(), 1),
        1 => vec(which(), 2..=3),
    ];
    let write = (grants, end());
    prop_oneof![
        4 => certain().prop_map(Step::Claim),
        1 => which().prop_map(Step::Settle),
        8 => write.prop_map(|(grants, end)| Step::Write { grants, end }),
    ]
}

fn which() -> impl Strategy<Value = Which> {
    prop_oneof![
        3 => (0..RESOURCES).prop_map(|resource| Which::Current { resource }),
        1 => certain(),
    ]
}

fn certain() -> impl Strategy<Value = Which> {
    let foreign = prop::bool::weighted(0.1);
    (0..RESOURCES, 1_u64..5, 0_usize..2, foreign).prop_map(|(resource, token, holder, foreign)| {
        Which::Certain {
            resource,
            token,
            holder,
            foreign,
        }
    })
}

fn end() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => Just(End::Commit),
        1 => Just(End::UndoneSavepoint),
        1 => Just(End::Rollback),
        1 => Just(End::Drop),
        2 => Just(End::Single),
    ]
}
