//! Jobs: each slot is done once, and its steps are a prefix.

use std::collections::BTreeMap;

use super::{
    Finding,
    act::{Act, Row, Stored},
};

#[derive(Debug, Default)]
pub(super) struct Jobs {
    rows: BTreeMap<String, Row>,
    /// How many runs report that they have done a slot, by the row of the slot.
    ran: BTreeMap<String, u64>,
}

impl Jobs {
    pub(super) fn act(&mut self, act: &Act) -> Finding {
        let Act::Job { row, ran, done } = act else {
            return None;
        };
        let runs = self.ran.entry(row.clone()).or_default();
        *runs += u64::from(*ran);
        if *runs > 1 {
            return Some(("job-once", format!("{row} has run {runs} times")));
        }
        let stored = self.rows.get(row);
        match (done, stored) {
            (Some(_), None) => Some(("job-once", format!("{row} is done, and not stored"))),
            (Some(token), Some(stored)) if stored.token > *token => {
                let what = format!(
                    "{row} is done under {token}, its work under {}",
                    stored.token
                );
                Some(("job-once", what))
            }
            _ => None,
        }
    }

    pub(super) fn stored(&mut self, stored: &Stored) -> Finding {
        let Stored::Row { name, row, .. } = stored else {
            return None;
        };
        self.rows.insert(name.clone(), *row);
        if name.starts_with("once/") && row.count > 1 {
            return Some(("job-once", format!("{name} is stored {} times", row.count)));
        }
        if name.starts_with("steps/") && row.count != row.steps {
            let what = format!("{name} has {} steps, stored {} times", row.steps, row.count);
            return Some(("job-steps", what));
        }
        None
    }

    pub(super) fn end(&self) -> Finding {
        let mut ran = self.ran.iter().filter(|(_, runs)| **runs > 0);
        let lost = ran.find(|(row, _)| !self.rows.contains_key(*row));
        lost.map(|(row, _)| ("job-once", format!("{row} has run, and is not stored")))
    }
}
