//! Acquiring: a node in the queue, until it is the first.

use std::sync::Arc;

use futures_util::future::OptionFuture;

use super::{
    acquiring::{Acquiring, released},
    entry::{Entry, Stop, View},
    error::Failure,
    floors::Floor,
    note::Note,
    queue::{self, Queue},
    service::ELECTION,
    session::Session,
    table::Begun,
};
use lock_core::{
    Attempt, Error,
    backend::{Grant, Wait},
};

/// How often a directory that somebody deletes is made again.
const DIRECTORY_ATTEMPTS: u32 = 3;

impl Acquiring<'_> {
    /// When a session ends, goes on in the next one, at the end of the queue.
    pub(super) async fn run(mut self) -> Result<Attempt<Grant>, Error> {
        let attempt = &self.request.attempt;
        loop {
            self.service.clear(&attempt.resource).await;
            let begun = self
                .service
                .table()
                .begin(attempt, self.service.clock.now());
            let answer = match begun {
                Begun::Ended => return Err(released()),
                Begun::Held(hold) => self.replay(&hold).await,
                Begun::New => {
                    let session = self.session().await?;
                    self.in_session(&session).await
                }
            };
            match answer {
                Ok(answer) => return Ok(answer),
                Err(stop) => {
                    let passes = matches!(stop, Stop::Gone | Stop::Failed(Failure::SessionOver(_)));
                    if !passes || self.has_lost_patience() {
                        return Err(self.why(stop));
                    }
                }
            }
        }
    }

    /// Why it ends here. A lease that was looked for and is gone was lost: the table knows of it.
    fn why(&self, stop: Stop) -> Error {
        let now = self.service.clock.now();
        let begun = self.service.table().begin(&self.request.attempt, now);
        match (&stop, begun) {
            (Stop::Gone, Begun::Ended) => released(),
            _ => stop.into(),
        }
    }

    async fn session(&self) -> Result<Arc<Session>, Error> {
        let until = match self.request.wait {
            Wait::Never => self.service.clock.now() + ELECTION,
            wait => wait.limit(),
        };
        let session = self.service.session(until).await?;
        session.check(self.request.ttl)?;
        Ok(session)
    }

    async fn in_session(&mut self, session: &Arc<Session>) -> Result<Attempt<Grant>, Stop> {
        let (service, request) = (self.service, self.request);
        let (paths, resource) = (&service.paths, &request.attempt.resource);
        let remembered = || service.floors.remembered(session, paths, resource);
        let floor = self.read(remembered).await?;
        if let Some(wanted) = request.floor {
            floor.check(wanted, service.floors.initial(), service.clock.unix_time())?;
        }
        if request.wait == Wait::Never
            && let Some(held) = self.look(session).await?
        {
            return Ok(held);
        }
        let (holder, metadata) = (request.attempt.holder, request.metadata.clone());
        let note = Note::new(request.ttl, floor.value, holder, metadata);
        let entry = Entry::enter(service, &request.attempt, session, note);
        let mut entry = entry.ok_or_else(released)?;
        let view = self.enqueue(&mut entry, &floor).await?;
        self.until_first(entry, floor, view).await
    }

    /// One look, for an acquire that does not wait: it costs the servers less than a queue entry.
    async fn look(&mut self, session: &Session) -> Result<Option<Attempt<Grant>>, Stop> {
        let directory = self.service.paths.directory(&self.request.attempt.resource);
        let queue = match self.read(|| session.children(&directory)).await {
            Ok(nodes) => Queue::new(nodes),
            Err(Stop::Failed(Failure::NoNode)) => return Ok(None),
            Err(stop) => return Err(stop),
        };
        match queue.first() {
            Some(first) => Ok(Some(self.held(session, &directory, first).await)),
            None => Ok(None),
        }
    }

    /// Creates the node. If nobody else came lately, its number shows whether it is already the
    /// first. Otherwise a look at the queue shows it, which is sent right behind the creation.
    async fn enqueue(
        &mut self,
        entry: &mut Entry<'_>,
        floor: &Floor,
    ) -> Result<Option<View>, Stop> {
        let (service, resource) = (self.service, &self.request.attempt.resource);
        let session = Arc::clone(&entry.session);
        entry.written = if self.waited {
            service.clock.now()
        } else {
            self.asked
        };
        let prefix = entry.prefix();
        let mut directories = 0;
        loop {
            let created = entry.create(&session, &prefix).ok_or_else(released)?;
            let is_quiet = service.floors.is_quiet(resource, floor);
            let nodes = (!is_quiet).then(|| session.children(&entry.directory));
            let (created, nodes) = tokio::join!(created, OptionFuture::from(nodes));
            match created {
                Ok((path, stat)) => {
                    entry.created(path, Some(stat));
                    let number = queue::number(entry.name());
                    if number.is_some_and(|it| service.floors.is_first(resource, floor, it)) {
                        return Ok(Some(View::alone(entry)));
                    }
                    let nodes = nodes.and_then(Result::ok);
                    return Ok(nodes.map(|nodes| View::new(nodes, Some(stat))));
                }
                Err(Failure::NoNode) if directories < DIRECTORY_ATTEMPTS => {
                    directories += 1;
                    service
                        .floors
                        .make(&session, &service.paths, resource)
                        .await?;
                }
                Err(failure) => {
                    self.bear(failure)?;
                    if let Some(path) = self.find_created(entry).await? {
                        entry.created(path, None);
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Looks for a node whose creation had no answer.
    async fn find_created(&mut self, entry: &Entry<'_>) -> Result<Option<String>, Stop> {
        loop {
            let synced = entry.session.sync(&entry.directory);
            let nodes = entry.session.children(&entry.directory);
            let (synced, nodes) = tokio::join!(synced, nodes);
            match synced.and(nodes) {
                Ok(nodes) => {
                    self.heard();
                    return Ok(entry.find(&nodes));
                }
                Err(Failure::NoNode) => return Ok(None),
                Err(failure) => self.bear(failure)?,
            }
        }
    }
}
