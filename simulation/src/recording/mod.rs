//! A schedule as a recording, which `palisade-demo draw` makes a picture of.
//!
//! A picture has room for one resource and two clients: `cast.rs` chooses them.

mod cast;
mod format;

use std::collections::BTreeMap;

use lock_core::{FencingToken, backend::Moment};

pub use self::format::Recording;
use self::{
    cast::Cast,
    format::{Event, Heading, Side, What},
};
use crate::{
    history::Happened,
    judge::act::{Act, Outcome, Stored},
    plan::Plan,
    schedule::Report,
    service::{self, Change, Effect, HowEnded, Kind, Sent},
    world::{GOES_ON, IS_KILLED, Line, PAUSES},
};

/// The recording of a schedule whose lines were kept.
#[must_use]
pub fn of(plan: &Plan, report: &Report) -> Recording {
    let broken = report.broken.as_ref();
    let cast = Cast::of(&report.history, broken);
    let mut recorder = Recorder {
        cast: &cast,
        events: Vec::new(),
        until: BTreeMap::new(),
        marks: 0,
        reads: BTreeMap::new(),
        waits: [false; 2],
        believes: [false; 2],
        writes: BTreeMap::new(),
    };
    for (at, happened) in &report.history.0 {
        recorder.follow(*at, happened);
    }
    recorder.follow_lines(&report.lines);
    let last = recorder.events.iter().map(|(at, ..)| *at).max();
    let end = broken.map_or(Moment::default(), |broken| broken.at);
    let end = match broken {
        Some(_) => std::cmp::min(end, last.unwrap_or_default()),
        None => last.unwrap_or_default(),
    };
    recorder.expire(end);
    let title = match broken {
        Some(broken) => format!(
            "Seed {} breaks {} ({})",
            plan.seed, broken.promise, cast.resource
        ),
        None => format!("Seed {} ({})", plan.seed, cast.resource),
    };
    let heading = Heading {
        title,
        clients: cast.clients.map(|client| format!("client {client}")),
        verdict: broken.map_or("No promise is broken.".to_owned(), |broken| {
            broken.what.clone()
        }),
    };
    recorder.recording(plan, heading, end, broken.is_some())
}

/// Turns what has happened into events of the picture.
struct Recorder<'a> {
    cast: &'a Cast,
    events: Vec<(Moment, Option<Side>, What)>,
    /// The ends of the leases that live.
    until: BTreeMap<u64, Moment>,
    marks: u64,
    /// The count that each client has read last.
    reads: BTreeMap<u32, u64>,
    waits: [bool; 2],
    believes: [bool; 2],
    /// The tokens of writes.
    writes: BTreeMap<u64, u64>,
}

impl Recorder<'_> {
    fn add(&mut self, at: Moment, side: Option<Side>, what: What) {
        if side.is_some() {
            self.events.push((at, side, what));
        }
    }

    fn follow(&mut self, at: Moment, happened: &Happened) {
        match happened {
            Happened::Act(client, act) => self.act(at, *client, act),
            Happened::Stored(stored) => self.stored(at, stored),
            Happened::Served(service::Event::Sent(sent)) => self.sent(at, sent),
            Happened::Served(service::Event::Changed(effect)) => self.changed(at, effect),
            Happened::Served(service::Event::Fault(service::Fault::EverythingLost)) => {
                self.expire_at(at, Moment::default(), true);
            }
            Happened::Served(_) => {}
        }
    }

    fn sent(&mut self, at: Moment, sent: &Sent) {
        let is_wish = matches!(sent.kind, Kind::Look { .. } | Kind::Together);
        let resource = sent.resource.as_ref().map(|resource| resource.as_str());
        let Some(side) = self.cast.side(sent.message.client) else {
            return;
        };
        let number = side as usize;
        let is_new = !self.waits[number] && !self.believes[number];
        if is_wish && is_new && resource == Some(&*self.cast.resource) {
            self.waits[number] = true;
            self.add(at, Some(side), What::AcquireRequested { wait_ms: 0 });
        }
    }

    fn changed(&mut self, at: Moment, effect: &Effect) {
        if effect.resource.as_str() != self.cast.resource {
            return;
        }
        match effect.change {
            Change::Granted { token, until, .. } => {
                let (side, ttl_ms) = (self.cast.side_of_token(token.get()), ms(until) - ms(at));
                let token = self.lives(token, until);
                if let Some(side) = side {
                    self.waits[side as usize] = false;
                    self.believes[side as usize] = true;
                }
                self.add(at, side, What::Granted { token, ttl_ms });
            }
            Change::Renewed { token, until } | Change::Confirmed { token, until } => {
                let (side, ttl_ms) = (self.cast.side_of_token(token.get()), ms(until) - ms(at));
                let token = self.lives(token, until);
                self.add(at, side, What::Renewed { token, ttl_ms });
            }
            Change::Ended { token, how } => {
                let (token, side) = (token.get(), self.cast.side_of_token(token.get()));
                let until = self.until.remove(&token).unwrap_or(at);
                match how {
                    HowEnded::Expired | HowEnded::OfferExpired => {
                        let at = std::cmp::min(at, until);
                        self.add(at, side, What::LeaseExpired { token });
                    }
                    _ => self.add(at, side, What::Released { token }),
                }
            }
            _ => {}
        }
    }

    fn lives(&mut self, token: FencingToken, until: Moment) -> u64 {
        self.until.insert(token.get(), until);
        token.get()
    }

    fn act(&mut self, at: Moment, client: u32, act: &Act) {
        let Some(side) = self.cast.side(client) else {
            return;
        };
        match act {
            Act::Reads { resource, count } if *resource == self.cast.resource => {
                self.reads.insert(client, *count);
                self.add(at, Some(side), What::Read { balance: *count });
            }
            Act::Refused { resource, token } if *resource == self.cast.resource => {
                self.refused(at, client, *token);
            }
            Act::Writes { write, token } => {
                self.writes.insert(*write, *token);
            }
            Act::Wrote {
                write,
                outcome: Outcome::Refused,
            } => {
                let token = self.writes.get(write).copied().unwrap_or(0);
                self.refused(at, client, token);
            }
            Act::Released { resource, .. } if *resource == self.cast.resource => {
                self.let_go(at, side);
            }
            Act::Ends { .. } => self.let_go(at, side),
            _ => {}
        }
    }

    fn refused(&mut self, at: Moment, client: u32, token: u64) {
        let what = What::WriteRefused {
            token,
            status: 412,
            high_water: self.marks,
            attempted: self.reads.get(&client).copied().unwrap_or(0) + 1,
        };
        self.add(at, self.cast.side_of_token(token), what);
    }

    /// A client no longer believes that it has a lease, and waits for no lease.
    fn let_go(&mut self, at: Moment, side: Side) {
        let number = side as usize;
        if self.waits[number] || self.believes[number] {
            (self.waits[number], self.believes[number]) = (false, false);
            self.add(at, Some(side), What::LetGo);
        }
    }

    fn stored(&mut self, at: Moment, stored: &Stored) {
        match stored {
            Stored::Mark {
                resource, token, ..
            } if *resource == self.cast.resource => {
                self.marks = *token;
                let side = self.cast.side_of_token(*token).unwrap_or(Side::One);
                self.add(at, Some(side), What::Claimed { token: *token });
            }
            Stored::Row {
                resource,
                row,
                mark,
                ..
            } if *resource == self.cast.resource => {
                let what = What::WriteAccepted {
                    token: row.token,
                    status: 200,
                    high_water: *mark,
                    before: row.count.saturating_sub(1),
                    after: row.count,
                };
                let side = self.cast.side_of_write(row.write);
                self.add(at, side.or(self.cast.side_of_token(row.token)), what);
            }
            _ => {}
        }
    }

    fn follow_lines(&mut self, lines: &[Line]) {
        let mut began = BTreeMap::new();
        for line in lines {
            let number = line.who.strip_prefix("client ");
            let Some(pid) = number.and_then(|number| number.parse().ok()) else {
                continue;
            };
            let side = self.cast.side(pid);
            let what = match &*line.what {
                PAUSES => {
                    // A longer pause may begin in the middle of another one.
                    if began.insert(pid, line.at).is_some() {
                        continue;
                    }
                    What::Paused { pid }
                }
                GOES_ON => {
                    let began = began.remove(&pid).unwrap_or(line.at);
                    let paused_ms = ms(line.at) - ms(began);
                    What::Resumed { pid, paused_ms }
                }
                IS_KILLED => What::Killed { pid },
                _ => continue,
            };
            self.add(line.at, side, what);
        }
    }

    /// Ends the leases that have run out before the end, because the lock service sees that only
    /// when somebody asks.
    fn expire(&mut self, end: Moment) {
        self.expire_at(end, end, false);
    }

    fn expire_at(&mut self, at: Moment, end: Moment, all: bool) {
        let until = std::mem::take(&mut self.until);
        for (token, until) in until {
            if all || until < end {
                let side = self.cast.side_of_token(token);
                let at = std::cmp::min(until, at);
                self.add(at, side, What::LeaseExpired { token });
            }
        }
    }

    fn recording(
        mut self,
        plan: &Plan,
        schedule: Heading,
        end: Moment,
        is_broken: bool,
    ) -> Recording {
        self.events.retain(|(at, ..)| *at <= end);
        self.events.sort_by_key(|(at, ..)| *at);
        let verdict = What::Verdict {
            expected: 0,
            found: 0,
            lost_update: is_broken,
            as_told: !is_broken,
        };
        self.events.push((end, None, verdict));
        let event = |(at, side, what): (Moment, Option<Side>, What)| Event {
            run: 1,
            act: "fenced",
            at_ms: ms(at),
            lane: what.lane(side),
            client: side.map(Side::name),
            what,
        };
        Recording {
            lock: "simulated",
            store: "memory",
            ttl_ms: u64::try_from(plan.ttl.as_millis()).unwrap_or(u64::MAX),
            pause_ms: 0,
            runs: 1,
            schedule,
            events: self.events.into_iter().map(event).collect(),
        }
    }
}

/// Milliseconds since the beginning.
fn ms(at: Moment) -> u64 {
    u64::try_from(at.since_origin().as_millis()).unwrap_or(u64::MAX)
}
