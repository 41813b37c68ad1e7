//! What the steps of an acquire share.

use super::{
    entry::Stop, error::Failure, note::Note, service::Service, session::Session, table::Hold,
};
use lock_core::{
    Attempt, Error, ErrorKind, Ttl,
    backend::{
        AcquireRequest, Grant, Lease, Moment,
        support::{End, Patience},
    },
};

/// One acquire under way.
#[derive(Debug)]
pub(super) struct Acquiring<'a> {
    pub(super) service: &'a Service,
    pub(super) request: &'a AcquireRequest,
    /// When it began. Unless it waited, no deadline is counted from a later moment.
    pub(super) asked: Moment,
    pub(super) waited: bool,
    /// Since no server has answered.
    patience: Option<Patience>,
}

impl<'a> Acquiring<'a> {
    pub(super) fn new(service: &'a Service, request: &'a AcquireRequest) -> Self {
        Self {
            service,
            request,
            asked: service.clock.now(),
            waited: false,
            patience: None,
        }
    }

    /// Goes on after a failure that may pass, unless it has lasted for too long.
    pub(super) fn bear(&mut self, failure: Failure) -> Result<(), Stop> {
        // A request that ran out of time may still be sent later, so it is not sent again.
        let Failure::NoAnswer(Some(_)) = failure else {
            return Err(failure.into());
        };
        if self.has_lost_patience() {
            return Err(failure.into());
        }
        Ok(())
    }

    /// Whether the servers have been silent for too long.
    pub(super) fn has_lost_patience(&mut self) -> bool {
        let (wait, now) = (self.request.wait, self.service.clock.now());
        let patience = self.patience.get_or_insert_with(|| Patience::of(wait, now));
        patience.is_over(now)
    }

    /// Reads, and again if the connection broke meanwhile: it may have been closed while nobody
    /// used it.
    pub(super) async fn read<T, F>(&mut self, read: impl Fn() -> F) -> Result<T, Stop>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        loop {
            match read().await {
                Err(failure @ Failure::NoAnswer(Some(_))) => self.bear(failure)?,
                answer => {
                    self.heard();
                    return Ok(answer?);
                }
            }
        }
    }

    pub(super) const fn heard(&mut self) {
        self.patience = None;
    }

    /// Answers an acquisition that was granted before: with its lease, if that is still there, and
    /// the time that is left.
    ///
    /// If it is gone, the next look at the table tells why: it was lost, or the attempt that had it
    /// was cancelled meanwhile. Only in the first case has the acquisition ended.
    pub(super) async fn replay(&self, hold: &Hold) -> Result<Attempt<Grant>, Stop> {
        let (service, attempt) = (self.service, &self.request.attempt);
        let is_ours = match hold.session.stat(&hold.path).await {
            Ok(stat) => stat.is_some_and(|stat| stat.ephemeral_owner == hold.session.id()),
            Err(Failure::SessionOver(_)) => false,
            Err(failure) => return Err(failure.into()),
        };
        if !is_ours {
            let now = service.clock.now();
            let (resource, holder) = (&attempt.resource, attempt.holder);
            let mut table = service.table();
            table.end(resource, holder, hold.token, End::Over, now);
        }
        if !is_ours || !service.table().join(attempt, hold.token) {
            return Err(Stop::Gone);
        }
        let lease = Lease::counted_from(self.asked, hold.deadline.since(self.asked));
        let grant = Grant::new(hold.token, lease);
        Ok(Attempt::Granted(if self.waited {
            grant.after_waiting()
        } else {
            grant
        }))
    }

    /// The answer when somebody else is the first in the queue.
    pub(super) async fn held(
        &self,
        session: &Session,
        directory: &str,
        first: &str,
    ) -> Attempt<Grant> {
        let path = format!("{directory}/{first}");
        let now = self.service.clock.now();
        let ours = self
            .service
            .table()
            .at(&self.request.attempt.resource, &path, now)
            .map(|hold| hold.deadline);
        let retry_after = match ours {
            Some(deadline) => deadline.since(now),
            None => match session.data(&path).await {
                Ok((data, _)) => Note::decode(&data)
                    .map_or_else(|| session.longest_lease(), |note| note.ttl.get()),
                Err(_) => Ttl::MIN.get(),
            },
        };
        Attempt::Held {
            retry_after: std::cmp::max(retry_after, Ttl::MIN.get()),
        }
    }
}

/// The error for an acquire whose acquisition has ended.
pub(super) fn released() -> Error {
    Error::not_applied(ErrorKind::Released)
}
