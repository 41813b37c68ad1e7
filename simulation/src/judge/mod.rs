//! Compares each event with the promises, as soon as it happens.
//!
//! Each file judges some promises: `tokens` the order of grants, `order` the waiters, `leases`
//! deadlines and releases, `attempts` late requests, `renewals` the watchdog, `rows` the contents
//! of the store, `jobs`, `terms` and `edge` the layers above. [`Judge`] hands them the acts of
//! clients (`act.rs`), of the store, and of the lock service.

pub(crate) mod act;
mod attempts;
mod edge;
mod in_words;
mod jobs;
mod leases;
mod order;
mod renewals;
mod rows;
mod terms;
mod tokens;
mod twin;
mod unseen;

use lock_core::backend::{AttemptId, Moment};

pub use self::act::Broken;
use self::{
    act::{Act, Row, Stored},
    attempts::Attempts,
    edge::Edge,
    jobs::Jobs,
    leases::Leases,
    order::Order,
    renewals::Renewals,
    rows::Rows,
    terms::Terms,
    tokens::Tokens,
    twin::Twin,
    unseen::Unseen,
};
use crate::{
    plan::{Fault, Plan},
    service,
};

/// All rules, and the first promise that was broken.
#[derive(Debug)]
pub(crate) struct Judge {
    promised: Promised,
    tokens: Tokens,
    attempts: Attempts,
    renewals: Renewals,
    order: Order,
    pub(crate) leases: Leases,
    pub(crate) rows: Rows,
    jobs: Jobs,
    terms: Terms,
    edge: Edge,
    pub(crate) twin: Twin,
    /// The rows of a store whose steps are not seen.
    unseen: Option<Unseen>,
    pub(crate) broken: Option<Broken>,
}

/// The promises of a schedule in which the lock service may lose its state or its time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Promised {
    /// Tokens rise.
    order: bool,
    /// Leases end when they were to end.
    leases: bool,
    /// A watchdog is never late: no process is stopped, and none ends.
    watchdog: bool,
    /// The length of a lease.
    ttl: std::time::Duration,
}

/// A rule's finding: the promise and what happened.
type Finding = Option<(&'static str, String)>;

impl Promised {
    fn of(plan: &Plan) -> Self {
        let loses_order = |fault: &Fault| matches!(fault, Fault::FailOver(_) | Fault::ClockBack(_));
        Self {
            order: !plan.faults.iter().any(|(_, fault)| loses_order(fault)),
            leases: plan.service_is_sound(),
            watchdog: plan.is_undisturbed(),
            ttl: plan.ttl,
        }
    }
}

impl Judge {
    pub(crate) fn new(plan: &Plan) -> Self {
        Self {
            promised: Promised::of(plan),
            tokens: Tokens::default(),
            attempts: Attempts::default(),
            renewals: Renewals::default(),
            order: Order::default(),
            leases: Leases::default(),
            rows: Rows::default(),
            jobs: Jobs::default(),
            terms: Terms::default(),
            edge: Edge::default(),
            twin: Twin::default(),
            unseen: None,
            broken: None,
        }
    }

    /// A judge for a store whose steps are not seen.
    pub(crate) fn blind(plan: &Plan) -> Self {
        Self {
            unseen: Some(Unseen::default()),
            ..Self::new(plan)
        }
    }

    /// A client has done something.
    pub(crate) fn act(&mut self, at: Moment, client: u32, act: &Act) {
        let promised = self.promised;
        self.attempts.act(client, act);
        let of_store = match &mut self.unseen {
            None => [
                self.rows.act(client, act),
                self.jobs.act(act),
                self.edge.act(act),
            ],
            Some(unseen) => [unseen.act(act), None, None],
        };
        let findings = [
            self.tokens.act(promised, act),
            self.leases.act(promised, at, act),
            self.terms.act(promised, &self.leases, act),
            self.renewals.act(promised, at, client, act),
        ];
        let findings = findings.into_iter().chain(of_store);
        self.twin.act(act);
        for (promise, what) in findings.flatten() {
            self.broke(promise, at, format!("client {client}: {what}"));
        }
    }

    /// The store has done something.
    pub(crate) fn stored(&mut self, at: Moment, stored: &Stored) {
        let findings = [
            self.rows.stored(stored),
            self.jobs.stored(stored),
            self.edge.stored(stored),
        ];
        for (promise, what) in findings.into_iter().flatten() {
            self.broke(promise, at, what);
        }
    }

    /// The lock service has done something.
    pub(crate) fn served(&mut self, at: Moment, event: &service::Event) {
        self.leases.served(event);
        self.renewals.served(at, event);
        let findings = [
            self.attempts.served(self.promised, event),
            self.order.served(self.promised, event),
        ];
        for (promise, what) in findings.into_iter().flatten() {
            self.broke(promise, at, what);
        }
    }

    /// How many requests a client has sent to the lock service.
    pub(crate) fn sent_by(&self, client: u32) -> u64 {
        self.attempts.sent_by(client)
    }

    /// The client of an attempt.
    pub(crate) fn client_of(&self, attempt: AttemptId) -> Option<u32> {
        self.attempts.client_of(attempt)
    }

    /// Everything is over.
    pub(crate) fn end(&mut self, at: Moment) {
        for (promise, what) in self.rows.end().into_iter().chain(self.jobs.end()) {
            self.broke(promise, at, what);
        }
    }

    /// Everything is over, and a store whose steps were not seen has these rows.
    pub(crate) fn end_with(&mut self, at: Moment, rows: &[(String, Row)]) {
        let finding = self.unseen.as_ref().and_then(|unseen| unseen.end(rows));
        if let Some((promise, what)) = finding {
            self.broke(promise, at, what);
        }
    }

    /// The first broken promise counts: others may follow from it.
    pub(crate) fn broke(&mut self, promise: &'static str, at: Moment, what: String) {
        self.broken.get_or_insert(Broken { promise, at, what });
    }
}
