use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use lock_core::{FencingToken, ResourceName};
use serde::{Deserialize, Serialize};

use super::{Act, ClientName, Event, Exchange, ExchangeId, Message, Story, What};
use palisade_gateway::wire::millis;

/// Everything that is needed to draw a scenario again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Recording {
    /// The kind of lock service.
    pub(crate) lock: String,
    /// The kind of store.
    pub(crate) store: String,
    pub(crate) ttl_ms: u64,
    /// The least time for which client 1 was stopped.
    pub(crate) pause_ms: u64,
    pub(crate) runs: u32,
    /// The texts for a simulated schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) schedule: Option<Heading>,
    /// The events, in the order of their times.
    pub(crate) events: Vec<Event>,
}

/// The texts around the picture of a simulated schedule (`simulation/src/recording`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Heading {
    pub(crate) title: String,
    /// The names of the two clients in that schedule.
    pub(crate) clients: [String; 2],
    pub(crate) verdict: String,
}

/// Records the requests at the gateway and the actions of the scenario, on one clock.
///
/// Only resources that were put on stage are recorded, so a gateway that serves other resources,
/// too, keeps them out of the picture. Cloning is cheap; clones share the record.
#[derive(Clone)]
pub(crate) struct Recorder(Arc<Shared>);

struct Shared {
    started: Instant,
    listener: Box<dyn Fn(&Event) + Send + Sync>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    events: Vec<Event>,
    stages: HashMap<ResourceName, Stage>,
    exchanges: Vec<Exchange>,
    /// The number of the first request that is kept. No number is used twice, even if requests were
    /// forgotten.
    first_exchange: ExchangeId,
}

/// The most requests of one run that are kept. A run has a few dozen, and a malicious client must
/// not fill the memory.
const EXCHANGES_MAX: usize = 2000;

/// The most events of one act that are kept, if requests have caused them, for the same reason.
const SEEN_MAX: usize = 5000;

/// The longest head of a request that is kept, in bytes. The heads in a run have a few hundred.
const HEAD_LEN_MAX: usize = 16 * 1024;

struct Stage {
    scene: (u32, Act),
    story: Story,
    lease: Option<SeenLease>,
    /// The number of events that requests have caused.
    seen: usize,
}

/// The last lease that has not been given back, as far as the gateway knows.
struct SeenLease {
    client: ClientName,
    token: FencingToken,
    ends_ms: u64,
}

impl Recording {
    /// One act of one run.
    pub(crate) fn scene(&self, run: u32, act: Act) -> Vec<Event> {
        let of_scene = |event: &&Event| event.run == run && event.act == act;
        self.events.iter().filter(of_scene).cloned().collect()
    }
}

impl Recorder {
    /// Starts the clock. Each event is passed to `listener` when it is recorded.
    pub(crate) fn new(listener: impl Fn(&Event) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Shared {
            started: Instant::now(),
            listener: Box::new(listener),
            state: Mutex::default(),
        }))
    }

    /// From now on, events of `resource` belong to this act of this run.
    pub(crate) fn stage(&self, resource: ResourceName, run: u32, act: Act, story: Story) {
        let stage = Stage {
            scene: (run, act),
            story,
            lease: None,
            seen: 0,
        };
        self.state().stages.insert(resource, stage);
    }

    /// Records one event that was not caused by a request.
    pub(crate) fn note(&self, resource: &ResourceName, client: Option<ClientName>, what: What) {
        self.take_down(resource, client, what, |event| event);
    }

    /// Records one event that was caused by a request of this client, with the number of the
    /// request, if the request was recorded. Does nothing if there are too many events already.
    pub(crate) fn note_seen(
        &self,
        resource: &ResourceName,
        client: ClientName,
        exchange: Option<ExchangeId>,
        what: What,
    ) {
        if self.counts_one_more(resource) {
            self.take_down(resource, Some(client), what, |event| {
                event.seen_in(exchange)
            });
        }
    }

    fn counts_one_more(&self, resource: &ResourceName) -> bool {
        let mut state = self.state();
        let Some(stage) = state.stages.get_mut(resource) else {
            return false;
        };
        stage.seen += 1;
        stage.seen <= SEEN_MAX
    }

    fn take_down(
        &self,
        resource: &ResourceName,
        client: Option<ClientName>,
        what: What,
        finish: impl FnOnce(Event) -> Event,
    ) {
        let mut state = self.state();
        let State { events, stages, .. } = &mut *state;
        let Some(stage) = stages.get_mut(resource) else {
            return;
        };
        let now_ms = millis(self.0.started.elapsed());
        let first_new = events.len();
        events.extend(stage.follow(client, &what, now_ms));
        events.push(finish(Event::new(stage.scene, now_ms, client, what)));
        for event in &mut events[first_new..] {
            event.story = stage.story;
        }
        // This is done under the lock, so that the listener receives events in their order.
        events[first_new..].iter().for_each(&self.0.listener);
    }

    /// Whether events of `resource` belong to a run.
    pub(crate) fn is_on_stage(&self, resource: &ResourceName) -> bool {
        self.state().stages.contains_key(resource)
    }

    /// Records a request about a resource; does nothing if the resource is not on stage, if there
    /// are too many already, or if the request has more headers than any of a run.
    pub(crate) fn begin_exchange(
        &self,
        resource: &ResourceName,
        request: Message,
    ) -> Option<ExchangeId> {
        let mut state = self.state();
        let seen = state.exchanges.len();
        let is_kept = seen < EXCHANGES_MAX && request.head_len() <= HEAD_LEN_MAX;
        if !state.stages.contains_key(resource) || !is_kept {
            return None;
        }
        state.exchanges.push(Exchange {
            request,
            response: None,
        });
        Some(state.first_exchange + ExchangeId::try_from(seen).ok()?)
    }

    /// Records the answer to a request, and the rest of the request that had not arrived before.
    pub(crate) fn end_exchange(&self, id: ExchangeId, request_body: String, response: Message) {
        let mut state = self.state();
        if let Some(exchange) = state.exchange(id) {
            exchange.request.body = request_body;
            exchange.response = Some(response);
        }
    }

    /// A recorded request.
    pub(crate) fn exchange(&self, id: ExchangeId) -> Option<Exchange> {
        self.state().exchange(id).cloned()
    }

    /// Forgets all records, and the resources on stage. The clock goes on.
    pub(crate) fn clear(&self) {
        let mut state = self.state();
        let seen = ExchangeId::try_from(state.exchanges.len()).unwrap_or(ExchangeId::MAX);
        *state = State {
            first_exchange: state.first_exchange.wrapping_add(seen),
            ..State::default()
        };
    }

    /// The recorded events so far, in the order of their times.
    pub(crate) fn events(&self) -> Vec<Event> {
        let mut events = self.state().events.clone();
        events.sort_by_key(|event| event.at_ms);
        events
    }

    /// The time since the clock was started.
    pub(crate) fn elapsed(&self) -> Duration {
        self.0.started.elapsed()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A record is never half written, so it is usable after a panic.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn exchange(&mut self, id: ExchangeId) -> Option<&mut Exchange> {
        let place = id.checked_sub(self.first_exchange)?;
        self.exchanges.get_mut(usize::try_from(place).ok()?)
    }
}

impl Stage {
    /// Follows the lease. A lock service does not announce an expiry. It shows when another client
    /// is granted the next lease; the time of the expiry follows from the ttl.
    fn follow(&mut self, client: Option<ClientName>, what: &What, now_ms: u64) -> Option<Event> {
        match (what, client) {
            (&What::Granted { token, ttl_ms }, Some(client)) => {
                let next = SeenLease {
                    client,
                    token,
                    ends_ms: now_ms + ttl_ms,
                };
                let expired = self.lease.replace(next)?;
                Some(Event::new(
                    self.scene,
                    std::cmp::min(expired.ends_ms, now_ms),
                    Some(expired.client),
                    What::LeaseExpired {
                        token: expired.token,
                    },
                ))
            }
            (&What::Renewed { token, ttl_ms }, _) => {
                if let Some(lease) = self.lease.as_mut().filter(|lease| lease.token == token) {
                    lease.ends_ms = now_ms + ttl_ms;
                }
                None
            }
            (&What::Released { token }, _) => {
                self.lease.take_if(|lease| lease.token == token);
                None
            }
            _ => None,
        }
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).unwrap()
    }

    fn granted(number: u64) -> What {
        What::Granted {
            token: token(number),
            ttl_ms: 0,
        }
    }

    /// Catches: a lease that is drawn as if it went on, or as ended although it was given back.
    #[test]
    fn a_lease_that_was_not_given_back_has_expired_when_the_next_is_granted() {
        let account = ResourceName::new("account:1").unwrap();
        let recorder = Recorder::new(|_| ());
        recorder.stage(account.clone(), 1, Act::Fenced, Story::Deposits);
        recorder.note(&account, Some(ClientName::One), granted(1));
        recorder.note(&account, Some(ClientName::Two), granted(2));
        let released = What::Released { token: token(2) };
        recorder.note(&account, Some(ClientName::Two), released.clone());
        recorder.note(&account, Some(ClientName::One), granted(3));

        let seen: Vec<_> = recorder
            .events()
            .into_iter()
            .map(|event| event.what)
            .collect();
        let expired = What::LeaseExpired { token: token(1) };
        assert_eq!(
            seen,
            [granted(1), expired, granted(2), released, granted(3)]
        );
    }

    /// Catches: requests without end that fill the memory, or that push out the events of the
    /// story.
    #[test]
    fn so_many_events_of_requests_are_kept_and_all_of_the_director() {
        let recorder = Recorder::new(|_| ());
        let accounts = ["account:1", "account:2"].map(|name| ResourceName::new(name).unwrap());
        for (account, act) in accounts.iter().zip(Act::BOTH) {
            recorder.stage(account.clone(), 1, act, Story::Deposits);
        }
        let read = || What::Read { balance: 1 };
        for _ in 0..SEEN_MAX + 1 {
            recorder.note_seen(&accounts[0], ClientName::One, None, read());
        }
        assert_eq!(recorder.events().len(), SEEN_MAX);
        // This limit does not count for the director and for the other act.
        recorder.note(&accounts[0], Some(ClientName::One), read());
        recorder.note_seen(&accounts[1], ClientName::One, None, read());
        assert_eq!(recorder.events().len(), SEEN_MAX + 2);
    }

    /// Catches: requests with huge heads that fill the memory.
    #[test]
    fn a_request_with_more_headers_than_any_of_a_run_is_not_kept() {
        let recorder = Recorder::new(|_| ());
        let account = ResourceName::new("account:1").unwrap();
        recorder.stage(account.clone(), 1, Act::Fenced, Story::Deposits);
        let begin = |len| {
            let headers = vec![("x".into(), "y".repeat(len - 1))];
            let message = Message {
                headers,
                ..Message::default()
            };
            recorder.begin_exchange(&account, message).is_some()
        };
        assert_eq!([HEAD_LEN_MAX, HEAD_LEN_MAX + 1].map(begin), [true, false]);
    }

    /// Catches: a late answer that is shown as that of a request of the next run.
    #[test]
    fn a_request_of_a_run_that_was_forgotten_is_not_taken_for_another() {
        let account = ResourceName::new("account:1").unwrap();
        let recorder = Recorder::new(|_| ());
        let begin = || {
            recorder.stage(account.clone(), 1, Act::Fenced, Story::Deposits);
            recorder.begin_exchange(&account, Message::default())
        };
        let old = begin().unwrap();
        recorder.clear();
        let new = begin().unwrap();
        recorder.end_exchange(old, "late".into(), Message::default());
        assert!(recorder.exchange(old).is_none());
        assert_eq!(recorder.exchange(new).unwrap().request.body, "");
    }
}
