use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex},
};

use fenced_store::{Memory, MemoryFencedStore};
use futures_util::FutureExt;
use lock_core::{ResourceName, backend::support::lock};

use crate::{
    judge::act::{Row, Stored},
    schedule::Log,
};

/// Looks at the store after each of its steps, and reports the changes.
pub(crate) struct Watch {
    store: MemoryFencedStore,
    log: Arc<Log>,
    seen: Mutex<Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    marks: BTreeMap<ResourceName, u64>,
    rows: BTreeMap<String, Row>,
    /// The rows that there may be, each with its resource.
    names: BTreeMap<String, ResourceName>,
}

impl Watch {
    pub(crate) fn new(memory: &Memory, log: Arc<Log>) -> Self {
        Self {
            store: MemoryFencedStore::in_memory(memory.clone()),
            log,
            seen: Mutex::default(),
        }
    }

    /// From now on this row is looked at, and the mark of its resource.
    pub(crate) fn row(&self, name: &str, resource: &ResourceName) {
        let is_new = {
            let mut seen = lock(&self.seen);
            if !seen.names.contains_key(name) {
                seen.names.insert(name.to_owned(), resource.clone());
            }
            let is_new = !seen.marks.contains_key(resource);
            seen.marks.entry(resource.clone()).or_default();
            is_new
        };
        if is_new {
            // The mark rose before, by a message of any client.
            self.look(None);
        }
    }

    /// Looks after a message of this client, if it is known. Marks first: a claim and a write never
    /// come in one step.
    pub(crate) fn look(&self, by: Option<u32>) {
        let seen = &mut *lock(&self.seen);
        for (resource, before) in &mut seen.marks {
            let mark = self.store.high_water(resource).now_or_never();
            let mark = mark.and_then(Result::ok).flatten();
            let token = mark.map_or(0, |mark| mark.token().get());
            if token != *before {
                *before = token;
                self.log.stored(&Stored::Mark {
                    resource: resource.as_str().to_owned(),
                    token,
                    by,
                });
            }
        }
        for (name, resource) in &seen.names {
            let row: Option<Row> = self.store.memory().get(name).ok().flatten();
            let Some(row) = row else { continue };
            if seen.rows.get(name) != Some(&row) {
                seen.rows.insert(name.clone(), row);
                let mark = seen.marks.get(resource).copied().unwrap_or(0);
                self.log.stored(&Stored::Row {
                    name: name.clone(),
                    resource: resource.as_str().to_owned(),
                    row,
                    mark,
                });
            }
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
