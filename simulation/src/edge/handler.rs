use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use fenced_http::{FENCING_ACCEPTED, Fenced, Problem};
use fenced_store::{FenceError, MemoryFencedStore, Receipt};
use http::{Request, Response, StatusCode};
use lock_core::backend::{Runtime, support::lock};

use super::{Body, Door, EDGE, Manner, WRITE_ID};
use crate::{
    judge::act::{Act, Outcome, Row, WriteId},
    schedule::Log,
    store::Watch,
    world::Process,
};

/// The service behind the layer: it writes what a request asks for, under the token of the request.
pub(super) struct Handler {
    process: Process,
    store: MemoryFencedStore,
    watch: Arc<Watch>,
    log: Arc<Log>,
    /// The token of the request before.
    last: Mutex<Option<Fenced>>,
}

impl Handler {
    pub(super) fn new(
        process: Process,
        store: MemoryFencedStore,
        watch: &Arc<Watch>,
        log: &Arc<Log>,
    ) -> Self {
        Self {
            process,
            store,
            watch: Arc::clone(watch),
            log: Arc::clone(log),
            last: Mutex::default(),
        }
    }

    pub(super) async fn answer(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let path = request.uri().path();
        let about = Door::of(path).and_then(|door| path.strip_prefix(door.path()));
        let fenced = request.extensions().get::<Fenced>();
        if fenced.is_none() {
            let what = format!("a request for {path} has passed without a token");
            self.log.broke("http-form", what);
        }
        let (Some(fenced), Some((about, manner)), Some(body)) = (
            fenced,
            about.and_then(Manner::of),
            Body::read(request.body()),
        ) else {
            return status(StatusCode::NOT_FOUND);
        };
        let before = lock(&self.last).replace(fenced.clone());
        let used = match (manner, &before) {
            (Manner::MixedUp, Some(before)) => before,
            _ => fenced,
        };
        let write = self.log.new_write();
        self.act(&Act::Handles {
            request: body.request,
            write,
            about: about.to_owned(),
            resource: fenced.resource().as_str().to_owned(),
            token: used.token().get(),
        });
        let mut response = match manner {
            Manner::Boasting => {
                let mut response = status(StatusCode::OK);
                let token = fenced.token().get();
                response
                    .headers_mut()
                    .insert(&FENCING_ACCEPTED, token.into());
                response
            }
            Manner::Fenced | Manner::MixedUp => self.written(used, write, body.takes).await,
        };
        response.headers_mut().insert(&WRITE_ID, write.into());
        response
    }

    async fn written(
        &self,
        fenced: &Fenced,
        write: WriteId,
        takes: [Duration; 2],
    ) -> Response<Bytes> {
        match self.write(fenced, write, takes).await {
            Ok(receipt) => {
                let mut response = status(StatusCode::NO_CONTENT);
                receipt.set_accepted(&mut response);
                response
            }
            Err(error) => {
                if matches!(error, FenceError::Stale { .. }) {
                    let mut coverage = self.log.coverage();
                    coverage.note("stale request refused at the edge");
                }
                Problem::from(&error).to_response()
            }
        }
    }

    async fn write(
        &self,
        fenced: &Fenced,
        write: WriteId,
        [before, within]: [Duration; 2],
    ) -> Result<Receipt, FenceError> {
        let runtime: &dyn Runtime = &self.process;
        let name = fenced.resource().as_str();
        self.watch.row(name, fenced.resource());
        runtime.sleep(before).await;
        let begun = self.store.begin(fenced).await;
        if begun.as_ref().is_err_and(FenceError::is_fenced) {
            self.act(&Act::Refused {
                resource: name.to_owned(),
                token: fenced.token().get(),
            });
        }
        let mut tx = begun?;
        let row: Row = tx.get(name)?.unwrap_or_default();
        runtime.sleep(within).await;
        let token = fenced.token().get();
        tx.set(name, &row.next(token, write))?;
        self.act(&Act::Writes { write, token });
        let committed = tx.commit().await;
        let outcome = Outcome::of(committed.as_ref());
        self.act(&Act::Wrote { write, outcome });
        committed
    }

    fn act(&self, act: &Act) {
        self.log.act(EDGE, act);
    }
}

fn status(status: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = status;
    response
}
