//! Renewing, releasing and cancelling.

use std::sync::Arc;

use futures_util::future::join_all;

use super::{
    error::Failure,
    floors,
    note::Note,
    queue::{self, Queue},
    service::Service,
    session::Session,
    table::Leftover,
};
use lock_core::{
    Error, ErrorKind, Released, Sequencer, Ttl,
    backend::{AttemptRef, Lease, RenewRequest, Renewed, support::End},
};

/// A lease as its node shows it.
#[derive(Debug)]
pub(super) struct Shown {
    pub(super) path: String,
    pub(super) version: i32,
    pub(super) created: i64,
    pub(super) note: Option<Note>,
    pub(super) data: Vec<u8>,
    /// The number of contenders behind it in the queue.
    pub(super) waiters: usize,
}

impl Service {
    /// Renews leases. All requests are sent before the first answer is awaited.
    pub(super) async fn renew(&self, leases: &[RenewRequest]) -> Vec<Result<Renewed, Error>> {
        join_all(leases.iter().map(|lease| self.renew_one(lease))).await
    }

    async fn renew_one(&self, request: &RenewRequest) -> Result<Renewed, Error> {
        let lease = &request.sequencer;
        let asked = self.runtime.now();
        let deadline = asked + request.ttl.get();
        let session = {
            let mut table = self.table();
            table
                .find(lease, asked)
                .map(|hold| Arc::clone(&hold.session))
        };
        let Some(session) = session else {
            return self.renew_elsewhere(lease).await;
        };
        session.check(request.ttl)?;
        let sent = {
            // Several callers may renew one lease at once. The node has to show the longest of the
            // promised times, whichever note is written last. So a note is made and sent in one
            // step.
            let mut table = self.table();
            table.find(lease, asked).map(|hold| {
                let promised = hold.promise(deadline);
                let note = Note {
                    ttl: whole_millis(promised.since(asked)),
                    ..hold.note.clone()
                };
                session.set_data(&hold.path, &note.encode(), None)
            })
        };
        let Some(sent) = sent else {
            return Ok(Renewed::NotHolder);
        };
        match sent.await {
            Ok(_) => {
                let deadline = self.table().renewed(lease, deadline, self.runtime.now());
                Ok(deadline.map_or(Renewed::NotHolder, |deadline| {
                    Renewed::Renewed(Lease::counted_from(asked, deadline.since(asked)))
                }))
            }
            Err(Failure::NoNode | Failure::SessionOver(_)) => {
                self.ended(lease, End::Over);
                Ok(Renewed::NotHolder)
            }
            Err(failure) => Err(failure.into()),
        }
    }

    /// The error for a renewal of a lease of another process. A node ends with the session of its
    /// process, even if another process renews the lease. So this process can promise nothing.
    async fn renew_elsewhere(&self, lease: &Sequencer) -> Result<Renewed, Error> {
        if self.elsewhere(lease).await?.is_none() {
            return Ok(Renewed::NotHolder);
        }
        let error = Error::not_applied(ErrorKind::Unsupported);
        Err(error.because("the lease belongs to the session of another process: renew it there"))
    }

    pub(super) async fn release(
        &self,
        lease: &Sequencer,
        tombstone: bool,
    ) -> Result<Released, Error> {
        let now = self.runtime.now();
        let hold = self.table().find(lease, now).map(|hold| {
            let before = hold.clone();
            hold.has_tombstone |= tombstone;
            before
        });
        let Some(hold) = hold else {
            return self.release_elsewhere(lease).await;
        };
        let end = match hold.session.delete(&hold.path, None).await {
            Ok(()) => {
                if let Some(number) = queue::number(&hold.path) {
                    let floors = &self.floors;
                    floors.is_gone(lease.resource(), number, hold.directory);
                }
                End::Released(hold.token)
            }
            // The answer to an earlier request was lost.
            Err(Failure::NoNode) if hold.has_tombstone => End::Released(hold.token),
            Err(Failure::NoNode | Failure::SessionOver(_)) => End::Over,
            Err(failure) => return Err(failure.into()),
        };
        self.ended(lease, end);
        Ok(end.answer(lease))
    }

    async fn release_elsewhere(&self, lease: &Sequencer) -> Result<Released, Error> {
        let ended = self.table().end_of(lease);
        if let Some(end) = ended {
            return Ok(end.answer(lease));
        }
        let Some(shown) = self.elsewhere(lease).await? else {
            return Ok(Released::NotHolder);
        };
        let session = self.session().await?;
        match session.delete(&shown.path, None).await {
            Ok(()) => Ok(Released::Released),
            Err(Failure::NoNode) => Ok(Released::NotHolder),
            Err(failure) => Err(failure.into()),
        }
    }

    fn ended(&self, lease: &Sequencer, end: End) {
        let (holder, token) = (lease.holder(), lease.token());
        let now = self.runtime.now();
        self.table().end(lease.resource(), holder, token, end, now);
    }

    /// The node of a lease of another process, if it exists.
    async fn elsewhere(&self, lease: &Sequencer) -> Result<Option<Shown>, Error> {
        let ended = self.table().end_of(lease);
        if ended.is_some() {
            return Ok(None);
        }
        let session = self.session().await?;
        let first = self.first(&session, lease.resource()).await?;
        Ok(first.filter(|shown| {
            shown.note.as_ref().is_some_and(|note| {
                let token = floors::token(note.floor, shown.created);
                note.holder == lease.holder().digest() && token.ok() == Some(lease.token())
            })
        }))
    }

    pub(super) async fn cancel(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let leftovers = self.table().cancel(attempt, self.runtime.now());
        self.reaper.notify_one();
        match leftovers {
            Some(leftovers) => self.remove_all(&leftovers).await,
            None => self.cancel_elsewhere(attempt).await,
        }
    }

    async fn remove_all(&self, leftovers: &[Leftover]) -> Result<(), Error> {
        for leftover in leftovers {
            self.remove(leftover).await?;
        }
        Ok(())
    }

    /// The answer to a cancel of an attempt that this process does not know. Only the process of
    /// the attempt knows which other attempts have its lease, and only that process can keep an
    /// acquire that is under way from taking another queue entry.
    async fn cancel_elsewhere(&self, attempt: &AttemptRef) -> Result<(), Error> {
        let session = self.session().await?;
        let directory = self.paths.directory(&attempt.resource);
        let (synced, nodes) = (session.sync(&directory), session.children(&directory));
        let (synced, nodes) = tokio::join!(synced, nodes);
        let nodes = match synced.and(nodes) {
            Ok(nodes) => nodes,
            Err(Failure::NoNode) => return Ok(()),
            Err(failure) => return Err(failure.into()),
        };
        if !nodes.iter().any(|node| queue::is_of(node, attempt.id)) {
            return Ok(());
        }
        let error = Error::not_applied(ErrorKind::Unsupported);
        Err(error.because("the attempt belongs to the session of another process: cancel it there"))
    }

    /// The first in the queue, after the leftovers of this process are deleted.
    pub(super) async fn first(
        &self,
        session: &Session,
        resource: &lock_core::ResourceName,
    ) -> Result<Option<Shown>, Failure> {
        self.clear(resource).await;
        let directory = self.paths.directory(resource);
        loop {
            let queue = match session.children(&directory).await {
                Ok(nodes) => Queue::new(nodes),
                Err(Failure::NoNode) => return Ok(None),
                Err(failure) => return Err(failure),
            };
            let Some(first) = queue.first() else {
                return Ok(None);
            };
            let path = format!("{directory}/{first}");
            match session.data(&path).await {
                Ok((data, stat)) => {
                    return Ok(Some(Shown {
                        path,
                        version: stat.version,
                        created: stat.czxid,
                        note: Note::decode(&data),
                        data,
                        waiters: queue.len() - 1,
                    }));
                }
                Err(Failure::NoNode) => {}
                Err(failure) => return Err(failure),
            }
        }
    }
}

/// The time in whole milliseconds, rounded up, because others wait for this time.
fn whole_millis(time: std::time::Duration) -> Ttl {
    let millis = u64::try_from(time.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
    Ttl::new(std::time::Duration::from_millis(millis)).unwrap_or(Ttl::MIN)
}
