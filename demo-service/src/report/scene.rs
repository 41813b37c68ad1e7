use lock_core::FencingToken;

use crate::events::{Act, ClientName, Event, ExchangeId, Heading, Story, What};

/// One act as drawn: spans and points on one time line, in milliseconds from its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scene {
    pub(super) run: u32,
    pub(super) act: Act,
    pub(super) story: Story,
    /// The texts for a simulated schedule.
    pub(super) heading: Option<Heading>,
    pub(super) length_ms: u64,
    pub(super) waits: Vec<Span>,
    /// From the grant to the answer to the write: the time in which the client believes in its
    /// lease.
    pub(super) sections: Vec<Span>,
    pub(super) pauses: Vec<Span>,
    /// The clients that were killed, and when.
    pub(super) kills: Vec<(ClientName, u64)>,
    pub(super) leases: Vec<LeaseBar>,
    pub(super) accesses: Vec<Access>,
    /// The store's mark from each time on. Empty if the act does not use it.
    pub(super) high_water: Vec<(u64, FencingToken)>,
    pub(super) verdict: Option<Verdict>,
}

/// A period in the life of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) client: ClientName,
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
}

/// A lease as the lock service sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LeaseBar {
    pub(super) span: Span,
    pub(super) token: FencingToken,
    pub(super) renewed_ms: Vec<u64>,
    pub(super) expired: bool,
}

/// A read or a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) client: ClientName,
    pub(super) at_ms: u64,
    pub(super) balance: i64,
    pub(super) kind: AccessKind,
    /// The request, for readers who want to see it.
    pub(super) exchange: Option<ExchangeId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Read,
    Accepted {
        token: Option<FencingToken>,
        status: u16,
        /// The fault, if there is one.
        wrong: Option<Wrong>,
    },
    Refused {
        token: Option<FencingToken>,
        status: u16,
        high_water: Option<FencingToken>,
    },
}

/// The fault of a write that should not have been accepted: its lease was over, or another client
/// had written after this client's read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The balance that it wiped out, if there was one.
    pub(super) over: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) expected: i64,
    pub(super) found: i64,
    pub(super) lost_update: bool,
    pub(super) as_told: bool,
}

impl Scene {
    /// The scene of these events, which must belong to one act and be in the order of their times.
    /// `None` if there are none.
    pub(crate) fn of(events: &[Event]) -> Option<Self> {
        let first = events.first()?;
        Self::of_act(first.act, events, None)
    }

    /// The scene of an act up to a moment on the clock of the events: anything that has not ended
    /// by then goes on. The moment may be after the last event, while the story goes on.
    pub(crate) fn of_act<'e>(
        act: Act,
        events: impl IntoIterator<Item = &'e Event>,
        until_ms: Option<u64>,
    ) -> Option<Self> {
        let seen = |event: &&Event| until_ms.is_none_or(|until_ms| event.at_ms <= until_ms);
        let mut events: Vec<&Event> = events.into_iter().filter(seen).collect();
        events.sort_by_key(|event| event.at_ms);
        let first = *events.first()?;
        let mut scene = Self {
            run: first.run,
            act,
            story: first.story,
            heading: None,
            length_ms: until_ms.map_or(0, |until_ms| until_ms - first.at_ms),
            waits: Vec::new(),
            sections: Vec::new(),
            pauses: Vec::new(),
            kills: Vec::new(),
            leases: Vec::new(),
            accesses: Vec::new(),
            high_water: Vec::new(),
            verdict: None,
        };
        for event in events {
            let at_ms = event.at_ms - first.at_ms;
            scene.length_ms = std::cmp::max(scene.length_ms, at_ms);
            match event.client {
                Some(client) => scene.follow(client, at_ms, event),
                None => scene.conclude(&event.what),
            }
        }
        // Anything without an end in the record lasts to the end of the record.
        let end_ms = scene.length_ms;
        let open = [&mut scene.waits, &mut scene.sections, &mut scene.pauses];
        let leases = scene.leases.iter_mut().map(|lease| &mut lease.span);
        for span in open.into_iter().flatten().chain(leases) {
            span.to_ms = std::cmp::min(span.to_ms, end_ms);
        }
        Some(scene)
    }

    /// The same scene with the texts of a simulated schedule.
    pub(super) fn with_heading(mut self, heading: Option<&Heading>) -> Self {
        self.heading = heading.cloned();
        self
    }

    /// The heading of the picture.
    pub(super) fn title(&self) -> &str {
        let heading = self.heading.as_ref();
        heading.map_or(self.act.title(), |heading| &heading.title)
    }

    /// The name of a client in the picture.
    pub(super) fn name(&self, client: ClientName) -> &str {
        match (&self.heading, client) {
            (None, client) => client.for_people(),
            (Some(heading), ClientName::One) => &heading.clients[0],
            (Some(heading), ClientName::Two) => &heading.clients[1],
        }
    }

    /// Whether it was played to its end and went as expected.
    pub(crate) fn as_told(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict.as_told)
    }

    pub(crate) const fn has_verdict(&self) -> bool {
        self.verdict.is_some()
    }

    /// Whether a deposit that was acknowledged is gone.
    pub(crate) fn lost_update(&self) -> bool {
        self.verdict.is_some_and(|verdict| verdict.lost_update)
    }

    fn follow(&mut self, client: ClientName, at_ms: u64, event: &Event) {
        let what = &event.what;
        match *what {
            What::AcquireRequested { .. } => self.waits.push(Span::open(client, at_ms)),
            What::Held { .. } => close(&mut self.waits, client, at_ms),
            What::Granted { token, .. } => {
                close(&mut self.waits, client, at_ms);
                let span = Span::open(client, at_ms);
                self.sections.push(span);
                let renewed_ms = Vec::new();
                self.leases.push(LeaseBar {
                    span,
                    token,
                    renewed_ms,
                    expired: false,
                });
            }
            What::Claimed { token } if self.act == Act::Fenced => {
                self.high_water.push((at_ms, token));
            }
            What::Renewed { token, .. } => {
                self.lease(token)
                    .into_iter()
                    .for_each(|lease| lease.renewed_ms.push(at_ms));
            }
            What::LeaseExpired { token } | What::Released { token } => {
                let expired = matches!(what, What::LeaseExpired { .. });
                if let Some(lease) = self.lease(token) {
                    lease.span.to_ms = at_ms;
                    lease.expired = expired;
                }
            }
            What::LetGo => {
                close(&mut self.waits, client, at_ms);
                close(&mut self.sections, client, at_ms);
            }
            What::Paused { .. } => self.pauses.push(Span::open(client, at_ms)),
            What::Resumed { .. } => close(&mut self.pauses, client, at_ms),
            What::Killed { .. } => {
                self.kills.push((client, at_ms));
                for spans in [&mut self.waits, &mut self.sections, &mut self.pauses] {
                    close(spans, client, at_ms);
                }
            }
            _ => self.follow_access(client, at_ms, event),
        }
    }

    fn follow_access(&mut self, client: ClientName, at_ms: u64, event: &Event) {
        let (balance, kind) = match event.what {
            What::Read { balance } => (balance, AccessKind::Read),
            What::WriteAccepted {
                token,
                status,
                before,
                after,
                ..
            } => {
                let wrong = self.wrong(client, token, before);
                let kind = AccessKind::Accepted {
                    token,
                    status,
                    wrong,
                };
                (after, kind)
            }
            What::WriteRefused {
                token,
                status,
                high_water,
                attempted,
                ..
            } => {
                let kind = AccessKind::Refused {
                    token,
                    status,
                    high_water,
                };
                (attempted, kind)
            }
            _ => return,
        };
        if kind != AccessKind::Read {
            close(&mut self.sections, client, at_ms);
        }
        self.accesses.push(Access {
            client,
            at_ms,
            balance,
            kind,
            exchange: event.exchange,
        });
    }

    /// The fault of a write that was accepted. Only recorded events count.
    fn wrong(
        &self,
        client: ClientName,
        token: Option<FencingToken>,
        before: Option<i64>,
    ) -> Option<Wrong> {
        let reads = |access: &&Access| access.client == client && access.kind == AccessKind::Read;
        let seen = self.accesses.iter().rfind(reads);
        let seen = seen.map(|access| access.balance);
        let is_unseen = seen.is_some() && before.is_some() && seen != before;
        (token < self.newest() || is_unseen).then_some(Wrong { over: before })
    }

    fn conclude(&mut self, what: &What) {
        if let What::Verdict {
            expected,
            found,
            lost_update,
            as_told,
        } = *what
        {
            self.verdict = Some(Verdict {
                expected,
                found,
                lost_update,
                as_told,
            });
        }
    }

    fn lease(&mut self, token: FencingToken) -> Option<&mut LeaseBar> {
        self.leases.iter_mut().find(|lease| lease.token == token)
    }

    fn newest(&self) -> Option<FencingToken> {
        self.leases.iter().map(|lease| lease.token).max()
    }
}

/// A token in a form that fits into a picture. A counter that starts at the clock has 15 digits,
/// and the tokens of one scenario differ in the last few.
pub(super) fn short(token: FencingToken) -> String {
    const DIGITS: usize = 6;
    let digits = token.to_string();
    match digits.len() {
        0..=DIGITS => digits,
        length => format!("…{}", &digits[length - DIGITS + 2..]),
    }
}

impl Span {
    const fn open(client: ClientName, from_ms: u64) -> Self {
        Self {
            client,
            from_ms,
            to_ms: u64::MAX,
        }
    }
}

fn close(spans: &mut [Span], client: ClientName, at_ms: u64) {
    let open = |span: &&mut Span| span.client == client && span.to_ms == u64::MAX;
    if let Some(span) = spans.iter_mut().find(open) {
        span.to_ms = at_ms;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ClientName::{One, Two};

    fn token(number: u64) -> FencingToken {
        FencingToken::new(number).unwrap()
    }

    fn granted(number: u64) -> What {
        What::Granted {
            token: token(number),
            ttl_ms: 10,
        }
    }

    fn scene(act: Act, story: Vec<(u64, ClientName, What)>) -> Scene {
        let events = story
            .into_iter()
            .map(|(at_ms, client, what)| Event::new((1, act), 1000 + at_ms, Some(client), what));
        Scene::of(&events.collect::<Vec<_>>()).unwrap()
    }

    /// Catches: a dead client that is drawn as if it held the lock.
    #[test]
    fn a_killed_client_believes_nothing_any_more() {
        let story = vec![
            (0, One, granted(1)),
            (3, One, What::Paused { pid: 7 }),
            (5, One, What::Killed { pid: 7 }),
            (9, Two, granted(2)),
        ];
        let scene = scene(Act::Fenced, story);
        assert_eq!(scene.sections[0].to_ms, 5);
        assert_eq!(scene.pauses[0].to_ms, 5);
        assert_eq!(scene.leases[0].span.to_ms, 9, "the lease lives on");
        assert_eq!(scene.kills, [(One, 5)]);
    }
}
