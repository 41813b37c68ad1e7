//! G1: a grant has a greater token than each grant of its resource that was returned before its
//! request began.

use std::collections::BTreeMap;

use super::{
    Finding, Promised,
    act::{Act, WorkId},
};

#[derive(Debug, Default)]
pub(super) struct Tokens {
    /// The greatest token that any client has got, by resource.
    returned: BTreeMap<String, u64>,
    /// That token as it was when the request of a piece of work began.
    before: BTreeMap<(WorkId, String), u64>,
}

impl Tokens {
    pub(super) fn act(&mut self, promised: Promised, act: &Act) -> Finding {
        match act {
            Act::Asks { work, resource } => {
                let returned = self.returned.get(resource).copied().unwrap_or(0);
                self.before.insert((*work, resource.clone()), returned);
                None
            }
            Act::Holds {
                work,
                resource,
                token,
                is_shared,
                ..
            } => {
                let greatest = self.returned.entry(resource.clone()).or_default();
                *greatest = std::cmp::max(*greatest, *token);
                let before = self.before.get(&(*work, resource.clone())).copied();
                let before = before.unwrap_or(0);
                let is_greater = *token > before || *is_shared && *token == before;
                (promised.order && !is_greater).then(|| {
                    let what = format!("{resource} is granted with {token}, not above {before}");
                    ("G1", what)
                })
            }
            _ => None,
        }
    }
}
