//! A table of the states and events of the machine. The machine itself is run to find them.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    env,
    fmt::Write,
    fs,
    path::Path,
    time::Duration,
};

use lock_core::{
    ErrorKind, FencingToken, Outcome, Released,
    backend::{
        Acquisition, Answer, Event, Failure, Grant, Lease, Moment, Rebase, Reply, Request, Sharing,
        Step, Wake,
    },
};

use super::{NOW, Patience, TICK, TTL, state::Client};

type Table = BTreeMap<(&'static str, &'static str), BTreeSet<String>>;

fn grant(left: Duration) -> Grant {
    Grant::new(FencingToken::MIN, Lease::counted_from(NOW, left))
}

/// The answers that a lock service may give to a request.
fn replies(request: Request) -> Vec<(&'static str, Reply)> {
    let failed = |kind, outcome| Reply::Failed(Failure { kind, outcome });
    let unavailable = ErrorKind::Unavailable;
    let mut replies = vec![
        ("lost", failed(unavailable, Outcome::Unknown)),
        ("refused", failed(unavailable, Outcome::NotApplied)),
    ];
    let left = TICK;
    replies.extend(match request {
        Request::Look { .. } => vec![
            ("granted", Reply::Granted(grant(TTL))),
            ("granted too late", Reply::Granted(grant(Duration::ZERO))),
            ("offered", Reply::Offered(grant(left))),
            ("offered too late", Reply::Offered(grant(Duration::ZERO))),
            ("held", Reply::Held { left }),
            (
                "queued",
                Reply::Queued {
                    left,
                    look_again: TTL,
                },
            ),
            ("error", failed(ErrorKind::Refused, Outcome::NotApplied)),
        ],
        Request::Confirm(_) => vec![
            ("granted", Reply::Granted(grant(TTL))),
            ("offer gone", Reply::Gone),
        ],
        Request::Release { .. } => vec![
            ("released", Reply::Released(Released::Released)),
            ("not holder", Reply::Released(Released::NotHolder)),
        ],
        Request::Cancel => vec![("cancelled", Reply::Cancelled)],
    });
    replies
}

/// The time until then, in whole ticks.
fn whole(until: Moment) -> Duration {
    let left = u64::try_from(until.since(NOW).as_micros()).unwrap_or(u64::MAX);
    Duration::from_millis(left.div_ceil(1000))
}

/// A machine, the event that it waits for, and the answer that its caller has.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    machine: Acquisition,
    request: Option<Request>,
    until: Moment,
    answer: Option<Answer>,
}

impl Place {
    /// The events that may happen here.
    fn events(&self) -> Vec<(&'static str, Event)> {
        let mut events = Vec::new();
        if self.machine.state() == "New" {
            let hears = true;
            return vec![("started", Event::Started { hears })];
        }
        if self.machine.owes() {
            events.push(("gone", Event::Gone));
        }
        if let Some(Answer::Granted(_)) = self.answer
            && self.machine.state() == "Holding"
        {
            let held = true;
            events.extend([
                ("release", Event::Release { held }),
                ("given up", Event::GiveUp),
            ]);
        }
        if let Some(request) = self.request {
            let copied = false;
            let of_reply = |(name, reply)| (name, Event::Replied { reply, copied });
            events.extend(replies(request).into_iter().map(of_reply));
        }
        if self.until != Moment::NEVER {
            events.push(("due", Event::Due));
        }
        if self.answer.is_none() {
            events.extend([
                ("closed", Event::Closed),
                ("woken: look", Event::Woken(Wake::Look)),
                ("woken: offered", Event::Woken(Wake::Offered(grant(TICK)))),
                ("woken: granted", Event::Woken(Wake::Granted(grant(TTL)))),
                ("woken: silent", Event::Woken(Wake::Silent(NOW))),
            ]);
        }
        events
    }

    /// The state after an event, and the step.
    fn after(&self, event: Event) -> (Self, Step) {
        let mut next = self.clone();
        if event == Event::Due {
            // Pauses are parts of a tick. Moments are whole ticks, or there would be too many
            // states.
            next.machine.rebase(Rebase {
                time: whole(self.until),
                tokens: 0,
                now: NOW,
            });
        }
        if matches!(event, Event::Replied { .. }) {
            next.request = None;
        }
        let step = next.machine.on(event, NOW);
        match step {
            Step::Send { request, until } => (next.request, next.until) = (Some(request), until),
            Step::Wait { until } => next.until = until,
            Step::Answer(answer) => {
                (next.request, next.until) = (None, Moment::NEVER);
                // The answer to a release follows a grant.
                next.answer = Some(next.answer.unwrap_or(answer));
            }
        }
        if event == Event::Gone {
            next.answer = Some(Answer::Clean);
        }
        (next, step)
    }
}

fn name(step: Step) -> String {
    match step {
        Step::Send { request, .. } => match request {
            Request::Look { queue: true } => "look in the queue".to_owned(),
            Request::Look { queue: false } => "look".to_owned(),
            Request::Confirm(_) => "confirm".to_owned(),
            Request::Release { tombstone: true } => "release, with a tombstone".to_owned(),
            Request::Release { tombstone: false } => "release".to_owned(),
            Request::Cancel => "cancel".to_owned(),
        },
        Step::Wait { .. } => "wait".to_owned(),
        Step::Answer(answer) => match answer {
            Answer::Failed(failure) => format!("**Failed** ({:?})", failure.outcome),
            Answer::Granted(_) => "**Granted**".to_owned(),
            Answer::Held { .. } => "**Held**".to_owned(),
            Answer::Released(released) => format!("**{released:?}**"),
            other => format!("**{other:?}**"),
        },
    }
}

/// Each state, and each step from it, is reached within so many events. A silent service adds more.
const EVENTS: usize = 9;

/// The steps from each state that can be reached.
fn walk() -> Table {
    let (mut table, mut seen) = (Table::new(), HashSet::new());
    let begun = [Patience::Never, Patience::Bounded, Patience::Forever].map(|patience| Place {
        machine: Client::of(patience, Sharing::Alone).machine,
        request: None,
        until: Moment::NEVER,
        answer: None,
    });
    let mut open = HashSet::from(begun);
    for _ in 0..EVENTS {
        let mut next = HashSet::new();
        for place in open {
            for (event, happened) in place.events() {
                let (after, step) = place.after(happened);
                let entry = table.entry((place.machine.state(), event));
                entry.or_default().insert(name(step));
                if !seen.contains(&after) {
                    next.insert(after);
                }
            }
            seen.insert(place);
        }
        open = next;
    }
    table
}

const BEGIN: &str = "<!-- states: made by tests/models/src/acquisition/states.rs -->\n";
const END: &str = "<!-- end of states -->\n";

/// `PALISADE_DRAW=1` writes the table. Catches: a page that shows another machine.
#[test]
fn the_page_shows_the_machine() {
    let mut table = String::from("| state | event | next step |\n|---|---|---|\n");
    let mut last = "";
    for ((state, event), steps) in walk() {
        let steps: Vec<_> = steps.into_iter().collect();
        let shown = if state == last { "" } else { state };
        writeln!(table, "| {shown} | {event} | {} |", steps.join("; ")).expect("it is a string");
        last = state;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("acquisition.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let (head, rest) = page.split_once(BEGIN).expect("the table begins");
    let (drawn, tail) = rest.split_once(END).expect("the table ends");
    if env::var_os("PALISADE_DRAW").is_some() {
        let page = format!("{head}{BEGIN}{table}{END}{tail}");
        fs::write(&path, page).expect("the page can be written");
        return;
    }
    assert!(
        drawn == table,
        "tests/models/acquisition.md is out of date: PALISADE_DRAW=1 draws it anew"
    );
}
