//! The service as a whole: whether it grants, and what it has issued.

use futures_util::future::try_join_all;

use super::{
    KIND,
    error::Failure,
    floors::{self, Floors, Standard},
    inspect::AT_ONCE,
    paths,
    service::Service,
    session::Session,
};
use crate::{Error, ErrorKind, FencingToken, Operation, ResourceName, Standing};

impl Service {
    pub(super) async fn standing(&self) -> Result<Standing, Error> {
        let operation = Operation::Standing;
        let session = self.session(operation, self.clock.now()).await?;
        let standing = self.stands(&session).await;
        standing.map_err(|failure| failure.into_error(operation))
    }

    pub(super) async fn retire(&self) -> Result<Standing, Error> {
        self.change(Operation::Retire, |present, _| {
            Ok(Standard {
                retired: true,
                ..present
            })
        })
        .await
    }

    pub(super) async fn reinstate(&self, floor: FencingToken) -> Result<Standing, Error> {
        self.change(Operation::Reinstate, |present, last| {
            let greatest = self.greatest_floor(last);
            if floor.get() > greatest {
                let error =
                    Error::not_applied(ErrorKind::FloorImplausible, Operation::Reinstate, KIND);
                return Err(error.because(format!("at most {greatest} is plausible now")));
            }
            Ok(Standard {
                floor: std::cmp::max(present.floor, floor.get()),
                retired: false,
            })
        })
        .await
    }

    /// Changes what the node of the service says, and tells what is so from then on: what is asked
    /// behind a change in one session shows it, and all that was granted before.
    async fn change(
        &self,
        operation: Operation,
        to: impl Fn(Standard, Option<FencingToken>) -> Result<Standard, Error>,
    ) -> Result<Standing, Error> {
        let failed = |failure: Failure| failure.into_error(operation);
        let session = self.session(operation, self.clock.now()).await?;
        let path = self.paths.service();
        loop {
            let (data, stat) = match session.data(path).await {
                Err(Failure::NoNode) => {
                    let made = Floors::make_service(&session, &self.paths).await;
                    made.map_err(failed)?;
                    continue;
                }
                read => read.map_err(failed)?,
            };
            let present = Standard::decode(&data).map_err(failed)?;
            let last = self.stands(&session).await.map_err(failed)?.last;
            let next = to(present, last)?;
            // Also if it says so already: then what was asked before, and arrives late, finds
            // another version.
            let written = session.set_data(path, &next.encode(), Some(stat.version));
            match written.await {
                Err(Failure::BadVersion | Failure::NoNode) => continue,
                written => written.map_err(failed)?,
            };
            // Whoever reads the service by now goes by it, and whoever remembers it does not yet.
            let half_done = |failure: Failure| failed(failure).outcome_unknown();
            self.touch(&session).await.map_err(half_done)?;
            return self.stands(&session).await.map_err(half_done);
        }
    }

    /// Lets those who remember a floor know that it may be another one now. Who makes a lock
    /// directory after this has looked for them reads the service after that.
    ///
    /// Until then some are granted leases with the old floor and others with the new one. The order
    /// of tokens does not depend on it: see [`Floor::is_above_own`](floors::Floor::is_above_own).
    async fn touch(&self, session: &Session) -> Result<(), Failure> {
        let directories = match session.children(self.paths.locks()).await {
            Err(Failure::NoNode) => return Ok(()),
            directories => directories?,
        };
        for some in directories.chunks(AT_ONCE) {
            let touched = some.iter().map(async |directory| {
                let path = format!("{}/{directory}", self.paths.locks());
                match session.set_data(&path, b"", None).await {
                    Ok(_) | Err(Failure::NoNode) => Ok(()),
                    Err(failure) => Err(failure),
                }
            });
            try_join_all(touched).await?;
        }
        Ok(())
    }

    async fn stands(&self, session: &Session) -> Result<Standing, Failure> {
        let synced = session.sync(self.paths.locks());
        let service = session.data(self.paths.service());
        let directories = session.children(self.paths.locks());
        let (_, service, directories) = tokio::join!(synced, service, directories);
        let service = match service {
            Ok((data, _)) => Standard::decode(&data)?,
            Err(Failure::NoNode) => Standard::default(),
            Err(failure) => return Err(failure),
        };
        let directories = match directories {
            Err(Failure::NoNode) => Vec::new(),
            directories => directories?,
        };
        let resources: Vec<_> = directories
            .iter()
            .filter_map(|directory| paths::resource(directory))
            .collect();
        let mut last = None;
        for some in resources.chunks(AT_ONCE) {
            let looks = some
                .iter()
                .map(|resource| self.last_of(session, resource, service.floor));
            last = try_join_all(looks)
                .await?
                .into_iter()
                .fold(last, std::cmp::max);
        }
        Ok(Standing {
            retired: service.retired,
            last,
            greatest_floor: FencingToken::new(self.greatest_floor(last)).ok(),
        })
    }

    fn greatest_floor(&self, last: Option<FencingToken>) -> u64 {
        let last = last.map_or(0, FencingToken::get);
        let now = self.clock.unix_time();
        self.floors.initial().greatest_floor(last, now)
    }

    /// No token of a resource is greater: the last change of its line came after all creations.
    async fn last_of(
        &self,
        session: &Session,
        resource: &ResourceName,
        least: u64,
    ) -> Result<Option<FencingToken>, Failure> {
        let (line, floor) = (self.paths.line(resource), self.paths.floor(resource));
        let (line, floor) = tokio::join!(session.stat(&line), session.data(&floor));
        let floor = match floor {
            Ok((data, _)) => floors::decode(&data)?,
            Err(Failure::NoNode) => 0,
            Err(failure) => return Err(failure),
        };
        let floor = std::cmp::max(floor, least);
        let token = line?.and_then(|stat| {
            let token = floors::token(floor, stat.pzxid, Operation::Standing);
            token.ok()
        });
        Ok(token)
    }
}
