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
    rows: BTreeMap<String, Row>,
    /// The number of the last commit.
    version: u64,
    pub(super) slots: BTreeMap<Place, Slot>,
    /// The slot of each job below which all times are forgotten.
    pub(super) forgotten: BTreeMap<String, String>,
}

/// A value, and the commit that wrote it.
#[derive(Debug)]
struct Row {
    value: Value,
    version: u64,
}

/// The entry of a slot that the store knows.
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

/// The changes of a transaction. `None` is a row that it has removed.
#[derive(Debug, Default)]
pub(super) struct Changes {
    rows: BTreeMap<String, Option<Value>>,
    /// The versions of the rows that it has read or written. A row that is not there has 0.
    seen: BTreeMap<String, u64>,
    pub(super) slots: BTreeMap<Place, Option<Slot>>,
    pub(super) forgotten: BTreeMap<String, String>,
}

impl Tables {
    pub(super) fn value(&self, name: &str) -> Option<&Value> {
        self.rows.get(name).map(|row| &row.value)
    }

    /// Whether another commit has changed a row that this transaction has read or written.
    pub(super) fn contradicts(&self, changes: &Changes) -> bool {
        let mut seen = changes.seen.iter();
        seen.any(|(name, version)| self.version_of(name) != *version)
    }

    fn version_of(&self, name: &str) -> u64 {
        self.rows.get(name).map_or(0, |row| row.version)
    }

    /// Writes a row past all transactions.
    pub(super) fn set(&mut self, name: &str, value: Value) {
        let mut changes = Changes::default();
        changes.rows.insert(name.to_owned(), Some(value));
        self.apply(changes);
    }

    pub(super) fn apply(&mut self, changes: Changes) {
        self.version += 1;
        let version = self.version;
        let rows = changes.rows.into_iter();
        let row = |value| Row { value, version };
        let rows = rows.map(|(name, value)| (name, value.map(row)));
        apply(&mut self.rows, rows);
        apply(&mut self.slots, changes.slots);
        self.forgotten.extend(changes.forgotten);
    }
}

impl Changes {
    pub(super) fn row<'a>(&'a mut self, tables: &'a Tables, name: &str) -> Option<&'a Value> {
        self.see(tables, name);
        let changed = self.rows.get(name).map(Option::as_ref);
        changed.unwrap_or_else(|| tables.value(name))
    }

    pub(super) fn set_row(&mut self, tables: &Tables, name: &str, value: Option<Value>) {
        self.see(tables, name);
        self.rows.insert(name.to_owned(), value);
    }

    fn see(&mut self, tables: &Tables, name: &str) {
        if !self.seen.contains_key(name) {
            let version = tables.version_of(name);
            self.seen.insert(name.to_owned(), version);
        }
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

fn apply<K: Ord, V>(to: &mut BTreeMap<K, V>, changes: impl IntoIterator<Item = (K, Option<V>)>) {
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
