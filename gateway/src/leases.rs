//! `/v1/leases/{resource}`: leases for clients in any language.
//!
//! The gateway hands out detached leases and never renews one: a client that stops renewing loses
//! its lease. A client gets a `Fencing-Token` with its lease. The client sends this proof with
//! every write, and with the renewal and the release.

use std::time::Duration;

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use fenced_http::{Fenced, Problem, ProblemType};
use fenced_store::{AcquireFenced, FencedLockError};
use lock_core::{
    DetachedLease, ErrorKind, Extension as Ability, Inspection, Owner, Released, ResourceName,
    Sequencer, Ttl, backend::Renewed,
};
use tokio::sync::SemaphorePermit;

use crate::{
    app::App,
    body::{Body, Segment},
    caller::Caller,
    error::ApiError,
    idempotency::Keyed,
    keys::KeyTable,
    problems,
    tokens::Tokens,
    wire::{AcquireBody, InspectBody, LeaseBody, LeaseView, RenewBody, RenewedBody, millis},
};

/// The shortest lease. A lease that ends before its token is claimed is of no use.
const TTL_MIN: Duration = Duration::from_millis(100);

/// The longest lease. A client whose answer gets lost cannot release its lease, so others have to
/// wait for as long as this.
const TTL_MAX: Duration = Duration::from_secs(5 * 60);

/// The longest time that one request waits for a lease. A longer wait takes several requests.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);

/// `POST`: acquires a lease, and waits for it as long as the request says. A client that goes away
/// leaves the queue.
pub(crate) async fn acquire<DB: KeyTable>(
    State(app): State<App<DB>>,
    caller: Option<Extension<Caller>>,
    headers: HeaderMap,
    Segment(resource): Segment,
    Body(asked): Body<AcquireBody>,
) -> Result<(StatusCode, Json<LeaseBody>), ApiError> {
    let resource = ResourceName::new(resource)?;
    let path = format!("/v1/leases/{resource}");
    let keyed = app.idempotency.keyed(&headers, &path, &asked)?;
    let AcquireBody {
        ttl_ms,
        wait_ms,
        metadata,
    } = asked;
    let terms = Terms::new(ttl_ms, wait_ms, metadata)?;
    let _place = place(&app, terms.wait)?;
    if let Some(keyed) = &keyed {
        keyed.check(&app.idempotency, &app.protected).await?;
    }
    let acquire = prepared(&app, keyed.as_ref(), &resource, &terms).renew(false);
    // This locks and claims before the answer, so older holders are shut out before the client
    // learns of its lease. A client that goes away drops this future, which leaves the queue or
    // gives the lease back.
    let acquired = tokio::select! {
        // This comes first, because a lease must not be granted to a client that is gone.
        biased;
        () = gone(caller) => return Err(client_gone().into()),
        acquired = acquire => acquired,
        () = app.closing() => return Err(closing().into()),
    };
    let guard = acquired.map_err(|error| not_acquired(error, &resource))?;
    // From here on the client has to renew and release the lease.
    let lease = lease_body(&app.tokens, &guard.detach())?;
    Ok((StatusCode::CREATED, Json(lease)))
}

/// The terms of a lease that a client may set.
#[derive(Clone, Debug)]
struct Terms {
    wait: Duration,
    ttl: Ttl,
    metadata: Option<String>,
}

impl Terms {
    /// # Errors
    /// 422 for a lease or a wait that is too short or too long.
    fn new(ttl_ms: u64, wait_ms: u64, metadata: Option<String>) -> Result<Self, ApiError> {
        let ttl = ttl(ttl_ms)?;
        let wait = Duration::from_millis(wait_ms);
        if wait > WAIT_MAX {
            let detail = format!(
                "wait_ms is at most {}: for a longer wait, repeat the request",
                millis(WAIT_MAX)
            );
            return Err(Problem::new(problems::UNPROCESSABLE).detail(detail).into());
        }
        Ok(Self {
            wait,
            ttl,
            metadata,
        })
    }
}

/// An acquisition on these terms, by the holder of its `Idempotency-Key` if it has one.
fn prepared<DB: KeyTable>(
    app: &App<DB>,
    keyed: Option<&Keyed>,
    resource: &ResourceName,
    terms: &Terms,
) -> AcquireFenced<DB> {
    let acquire = app.protected.acquire(resource);
    let mut acquire = acquire.wait_or_look(terms.wait).ttl(terms.ttl);
    if let Some(metadata) = &terms.metadata {
        acquire = acquire.metadata(metadata.as_str());
    }
    let Some(holder) = keyed.and_then(|keyed| keyed.holder(resource)) else {
        return acquire;
    };
    // In both cases, a client that goes away does not end the lease of its repeated request.
    if app.locks().capabilities().has(Ability::Holds) {
        acquire.owner(&Owner::from_id(holder))
    } else {
        acquire.holder(holder)
    }
}

/// The problem for a client that gets no lease.
pub(crate) fn not_acquired(error: FencedLockError, resource: &ResourceName) -> ApiError {
    if let Some(retry_after) = is_held(&error) {
        return held(retry_after, resource).into();
    }
    match error {
        FencedLockError::Lock(error) if error.kind() == ErrorKind::Released => spent().into(),
        error => error.into(),
    }
}

/// The pause before the next try, if another client holds the lease.
fn is_held(error: &FencedLockError) -> Option<Duration> {
    match error {
        FencedLockError::Lock(error) if error.kind() == ErrorKind::WaitTimeout => {
            Some(error.retry_after().unwrap_or_default())
        }
        _ => None,
    }
}

/// `PUT`: renews the lease of the request's token to a full ttl.
pub(crate) async fn renew<DB: KeyTable>(
    State(app): State<App<DB>>,
    fenced: Fenced,
    Body(RenewBody { ttl_ms }): Body<RenewBody>,
) -> Result<Json<RenewedBody>, ApiError> {
    let ttl = ttl(ttl_ms)?;
    match app.locks().renew(fenced.sequencer(), ttl).await? {
        Renewed::Renewed(lease) => {
            if let Err(error) = app.protected.keep(fenced.sequencer()).await {
                tracing::debug!(%error, "the next renewal keeps the mark");
            }
            let remaining_ms = millis(lease.deadline().since(app.locks().runtime().now()));
            // The token is signed again, because a lease may be renewed for longer than its first
            // key is valid.
            let fencing_token = written(&app.tokens, fenced.sequencer())?;
            Ok(Json(RenewedBody {
                ttl_ms,
                remaining_ms,
                fencing_token,
            }))
        }
        Renewed::NotHolder => Err(ended().into()),
    }
}

/// `DELETE`: releases the lease of the request's token. A repeated release has the same answer.
pub(crate) async fn release<DB: KeyTable>(
    State(app): State<App<DB>>,
    fenced: Fenced,
) -> Result<StatusCode, ApiError> {
    match app.locks().release(fenced.sequencer()).await? {
        Released::Released => Ok(StatusCode::NO_CONTENT),
        Released::NotHolder => Err(ended().into()),
    }
}

/// `GET`: the holder, as any client may see it.
pub(crate) async fn inspect<DB: KeyTable>(
    State(app): State<App<DB>>,
    Segment(resource): Segment,
) -> Result<Json<InspectBody>, ApiError> {
    let resource = ResourceName::new(resource)?;
    let inspection = app.locks().inspect(&resource).await?;
    Ok(Json(view(resource, inspection)))
}

/// A resource as any client may see it.
pub(crate) fn view(resource: ResourceName, inspection: Inspection) -> InspectBody {
    let lease = inspection.holder.map(|holder| LeaseView {
        token: holder.token,
        holder_fingerprint: holder.fingerprint,
        remaining_ms: millis(holder.remaining),
        metadata: holder.metadata.map(|metadata| metadata.to_string()),
    });
    InspectBody {
        resource: resource.into(),
        lease,
        waiters: inspection.waiters,
    }
}

fn ttl(ttl_ms: u64) -> Result<Ttl, ApiError> {
    let ttl = Duration::from_millis(ttl_ms);
    if !(TTL_MIN..=TTL_MAX).contains(&ttl) {
        let (least, most) = (millis(TTL_MIN), millis(TTL_MAX));
        let detail = format!("ttl_ms is from {least} to {most}: for longer, renew the lease");
        return Err(Problem::new(problems::UNPROCESSABLE).detail(detail).into());
    }
    Ok(Ttl::new(ttl)?)
}

fn lease_body(tokens: &Tokens, lease: &DetachedLease) -> Result<LeaseBody, Problem> {
    let sequencer = &lease.sequencer;
    let fencing_token = written(tokens, sequencer)?;
    Ok(LeaseBody {
        resource: sequencer.resource().to_string(),
        token: sequencer.token(),
        issuer: sequencer.issuer().to_string(),
        holder: sequencer.holder().expose(),
        ttl_ms: lease.ttl.as_millis(),
        remaining_ms: millis(lease.remaining),
        fencing_token,
    })
}

/// The `Fencing-Token` of a grant.
fn written(tokens: &Tokens, sequencer: &Sequencer) -> Result<String, Problem> {
    // A sequencer has no byte that a header may not have.
    let header = tokens.header(sequencer).ok();
    header
        .and_then(|value| value.to_str().map(str::to_owned).ok())
        .ok_or_else(|| Problem::new(ProblemType::SERVICE_FAULT))
}

/// A place among the waiting requests, until it is dropped. A request that does not wait needs
/// none.
fn place<DB: KeyTable>(
    app: &App<DB>,
    wait: Duration,
) -> Result<Option<SemaphorePermit<'_>>, Problem> {
    if wait.is_zero() {
        return Ok(None);
    }
    app.waiting.try_acquire().map(Some).map_err(|_| {
        Problem::new(problems::LOCK_UNAVAILABLE)
            .detail("too many requests wait for a lease here: try again later, or without wait_ms")
            .retry_after(Duration::from_secs(1))
    })
}

fn held(retry_after: Duration, resource: &ResourceName) -> Problem {
    Problem::new(problems::LOCK_HELD)
        .detail("another client holds the lease: try again later, or wait for it with wait_ms")
        .with("resource", resource.as_str())
        .with("retry_after_ms", millis(retry_after))
        .retry_after(retry_after)
}

/// The problem of an acquisition whose lease has ended. It has a key, because an acquisition
/// without a key is never repeated.
fn spent() -> Problem {
    Problem::new(problems::KEY_SPENT)
        .detail("the lease of this Idempotency-Key has ended: acquire again with a new key")
}

/// Resolves when the client is gone, if the server has passed on a [`Caller`]. Another server than
/// ours drops the handler of a client that is gone.
async fn gone(caller: Option<Extension<Caller>>) {
    match caller {
        Some(Extension(caller)) => caller.gone().await,
        None => std::future::pending().await,
    }
}

/// The answer to a client that is gone. No client reads it.
fn client_gone() -> Problem {
    Problem::new(problems::LOCK_UNAVAILABLE).detail("the client closed the connection")
}

fn closing() -> Problem {
    Problem::new(problems::LOCK_UNAVAILABLE)
        .detail("this gateway is shutting down: ask another one, or this one again later")
        .retry_after(Duration::from_secs(1))
}

fn ended() -> Problem {
    Problem::new(problems::LEASE_ENDED)
        .detail("this lease has ended: acquire the lock again and start afresh")
}
