//! Rows and slots of jobs, and the changes of a transaction that is still open.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    time::Duration,
};

use lock_core::FencingToken;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::FenceError;

/// A job and one of its slots.
pub(super) type Place = (String, String);

#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) rows: BTreeMap<String, Value>,
    pub(super) slots: BTreeMap<Place, Slot>,
    /// The slot of each job below which all times are forgotten.
    pub(super) forgotten: BTreeMap<String, String>,
}

/// A slot of which something is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Slot {
    /// The token under which it was done, and when, since 1970.
    pub(super) done: Option<(FencingToken, Duration)>,
    pub(super) steps: u64,
    pub(super) progress: Option<String>,
    pub(super) attempts: u64,
    pub(super) last_error: Option<String>,
    /// Since 1970.
    pub(super) retry_at: Option<Duration>,
}

/// What a transaction has written. `None` is a row that it has removed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) rows: BTreeMap<String, Option<Value>>,
    pub(super) slots: BTreeMap<Place, Option<Slot>>,
    pub(super) forgotten: BTreeMap<String, String>,
}

impl Tables {
    pub(super) fn apply(&mut self, changes: Changes) {
        apply(&mut self.rows, changes.rows);
        apply(&mut self.slots, changes.slots);
        self.forgotten.extend(changes.forgotten);
    }
}

impl Changes {
    pub(super) fn row<'a>(&'a self, tables: &'a Tables, name: &str) -> Option<&'a Value> {
        let changed = self.rows.get(name).map(Option::as_ref);
        changed.unwrap_or_else(|| tables.rows.get(name))
    }

    pub(super) fn slot<'a>(&'a self, tables: &'a Tables, place: &Place) -> Option<&'a Slot> {
        let changed = self.slots.get(place).map(Option::as_ref);
        changed.unwrap_or_else(|| tables.slots.get(place))
    }

    /// The slots of all jobs, in their order.
    pub(super) fn slots(&self, tables: &Tables) -> BTreeMap<Place, Slot> {
        let mut slots = tables.slots.clone();
        apply(&mut slots, self.slots.clone());
        slots
    }

    /// The slot below which the times of this job are forgotten; empty if there is none.
    pub(super) fn below<'a>(&'a self, tables: &'a Tables, job: &str) -> &'a str {
        let below = self.forgotten.get(job);
        below
            .or_else(|| tables.forgotten.get(job))
            .map_or("", String::as_str)
    }
}

fn apply<K: Ord, V>(to: &mut BTreeMap<K, V>, changes: BTreeMap<K, Option<V>>) {
    for (key, change) in changes {
        match (to.entry(key), change) {
            (entry, Some(value)) => drop(entry.insert_entry(value)),
            (Entry::Occupied(entry), None) => drop(entry.remove()),
            (Entry::Vacant(_), None) => {}
        }
    }
}

pub(super) fn encoded<T: Serialize>(value: &T) -> Result<Value, FenceError> {
    let value = serde_json::to_value(value);
    value.map_err(|error| sqlx::Error::Encode(error.into()).into())
}

pub(super) fn decoded<T: DeserializeOwned>(value: Option<&Value>) -> Result<Option<T>, FenceError> {
    let value = value.map(T::deserialize).transpose();
    value.map_err(|error| sqlx::Error::Decode(error.into()).into())
}
