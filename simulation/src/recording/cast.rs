//! Which resource is drawn, and which two clients.

use std::collections::BTreeMap;

use lock_core::backend::AttemptId;

use super::format::Side;
use crate::{
    history::{Happened, History},
    judge::{Broken, act::Act},
    schedule::{OPERATOR, RESTARTED},
    service::{Change, Event},
};

/// The resource and the clients of a picture.
#[derive(Debug, Default)]
pub(super) struct Cast {
    pub(super) resource: String,
    pub(super) clients: [u32; 2],
    /// The resource and the client of each token.
    leases: BTreeMap<u64, (String, u32)>,
    /// The client of each write.
    writes: BTreeMap<u64, u32>,
    attempts: BTreeMap<AttemptId, u32>,
}

impl Cast {
    /// The resource that the broken promise names, and its last two holders. Otherwise the resource
    /// with the most grants.
    pub(super) fn of(history: &History, broken: Option<&Broken>) -> Self {
        let mut cast = Self::default();
        for (_, happened) in &history.0 {
            match happened {
                Happened::Served(event) => cast.served(event),
                Happened::Act(client, Act::Writes { write, .. }) => {
                    cast.writes.insert(*write, same(*client));
                }
                _ => {}
            }
        }
        cast.resource = cast.chosen_resource(broken);
        cast.clients = cast.chosen_clients(history);
        cast
    }

    fn served(&mut self, event: &Event) {
        let Event::Changed(effect) = event else {
            return;
        };
        let by = same(effect.by.client);
        match effect.change {
            Change::Queued { attempt } => {
                self.attempts.entry(attempt).or_insert(by);
            }
            Change::Granted { token, attempt, .. } => {
                let client = *self.attempts.entry(attempt).or_insert(by);
                let lease = (effect.resource.as_str().to_owned(), client);
                self.leases.insert(token.get(), lease);
            }
            _ => {}
        }
    }

    fn chosen_resource(&self, broken: Option<&Broken>) -> String {
        let mut grants = BTreeMap::<&str, u64>::new();
        for (resource, _) in self.leases.values() {
            *grants.entry(resource).or_default() += 1;
        }
        let text = broken.map_or("", |broken| &broken.what);
        let is_edge = |letter: char| letter.is_whitespace() || ",;".contains(letter);
        let mut words = text.split(is_edge);
        let named = words.find(|word| grants.contains_key(word));
        let most = || grants.iter().max_by_key(|(_, count)| **count);
        let chosen = named.or_else(|| most().map(|(resource, _)| *resource));
        chosen.unwrap_or_default().to_owned()
    }

    /// The last two holders, in the order of their first grants; those who do most if there are not
    /// so many.
    fn chosen_clients(&self, history: &History) -> [u32; 2] {
        let of_resource = |(resource, _): &&(String, u32)| *resource == self.resource;
        let holders = self.leases.values().filter(of_resource);
        let holders: Vec<_> = holders.map(|(_, client)| *client).collect();
        let mut busy = BTreeMap::<u32, u64>::from([(0, 0), (1, 0)]);
        for (_, happened) in &history.0 {
            if let Happened::Act(client, _) = happened {
                *busy.entry(same(*client)).or_default() += 1;
            }
        }
        let mut busy: Vec<_> = busy
            .into_iter()
            .filter(|(client, _)| *client < OPERATOR)
            .collect();
        busy.sort_by_key(|(_, acts)| std::cmp::Reverse(*acts));
        let mut chosen = Vec::new();
        let candidates = holders.iter().rev().copied();
        for client in candidates.chain(busy.iter().map(|(client, _)| *client)) {
            if chosen.len() < 2 && !chosen.contains(&client) {
                chosen.push(client);
            }
        }
        let first = |client: &u32| holders.iter().position(|holder| holder == client);
        chosen.sort_by_key(|client| first(client).unwrap_or(usize::MAX));
        [chosen[0], chosen[1]]
    }

    /// The side of a client, also of its second process.
    pub(super) fn side(&self, client: u32) -> Option<Side> {
        match self
            .clients
            .iter()
            .position(|chosen| *chosen == same(client))
        {
            Some(0) => Some(Side::One),
            Some(_) => Some(Side::Two),
            None => None,
        }
    }

    /// The side of the client that has this token of the resource.
    pub(super) fn side_of_token(&self, token: u64) -> Option<Side> {
        let (resource, client) = self.leases.get(&token)?;
        (*resource == self.resource).then(|| self.side(*client))?
    }

    pub(super) fn side_of_write(&self, write: u64) -> Option<Side> {
        self.side(*self.writes.get(&write)?)
    }
}

/// The number of a client's first process.
fn same(client: u32) -> u32 {
    match client {
        OPERATOR.. => client,
        _ => client % RESTARTED,
    }
}
