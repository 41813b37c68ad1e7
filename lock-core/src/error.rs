use std::{error::Error as StdError, fmt, sync::Arc, time::Duration};

use crate::{InvalidMetadata, InvalidName, InvalidTtl, ResourceName};

/// The name that stands for the lock service in errors that no lock service has made.
pub const OURSELVES: &str = "palisade";

/// Why an operation on the lock service failed, and whether it may have taken effect nevertheless.
///
/// Act on [`kind`](Error::kind) and [`outcome`](Error::outcome). The error of the client library
/// underneath is the [`source`](StdError::source); its type is not part of this crate's API.
///
/// # Examples
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let memory = lock_core::memory::MemoryBackend::default();
/// # let locks = lock_core::LockManager::builder().build(memory)?;
/// use lock_core::{ErrorKind, Outcome};
///
/// match locks.acquire("account:42").await {
///     Ok(guard) => drop(guard.release().await?),
///     Err(error) if error.kind() == ErrorKind::QueueFull => println!("busy: {error}"),
///     Err(error) if error.is_retryable() => println!("try again: {error}"),
///     Err(error) => return Err(error.into()),
/// }
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    operation: Operation,
    backend: &'static str,
    outcome: Outcome,
    resource: Option<ResourceName>,
    detail: Option<String>,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn StdError + Send + Sync>>,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// An argument is invalid: fix the call. If it is a name, a ttl or metadata, the
    /// [`source`](StdError::source) is its [`InvalidName`], [`InvalidTtl`] or [`InvalidMetadata`]
    /// and says what is wrong with it.
    InvalidInput,
    /// This build or this backend does not have the feature. The text names the feature.
    Unsupported,
    /// The lock service could not be reached or did not answer in time: try again.
    Unavailable,
    /// The lock service answered with an error of its own, such as a missing permission.
    Refused,
    /// Another holder had the resource until the wait was over.
    WaitTimeout,
    /// The greatest allowed number of acquisitions were waiting already.
    QueueFull,
    /// The acquisition was released or cancelled, or its lease ran out: acquire afresh.
    Released,
    /// The lease is not held any more.
    Lost,
    /// The floor is so far ahead that it must be a mistake. It would use up other resources'
    /// tokens.
    FloorImplausible,
    /// The stored token counter is not a valid counter: an operator has to look.
    CounterBroken,
    /// The counter has reached [`FencingToken::MAX`](crate::FencingToken::MAX).
    TokensExhausted,
    /// Another client configured the same lock service differently.
    ConfigMismatch,
    /// Fewer replicas than asked for received the grant in time, so it was given back: try again.
    TooFewReplicas,
    /// The manager has been shut down, or its watchdog has ended with the runtime on which it was
    /// made, or by a panic of the lock service's implementation: see
    /// [`LockManager`](crate::LockManager).
    ShutDown,
}

/// Which operation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Connecting to the lock service.
    Connect,
    /// Acquiring a lease.
    Acquire,
    /// Renewing a lease.
    Renew,
    /// Releasing a lease.
    Release,
    /// Cancelling an attempt to acquire.
    Cancel,
    /// Looking at a resource.
    Inspect,
    /// Listing the held resources.
    List,
    /// Ending another holder's lease.
    ForceRelease,
}

/// Whether the failed operation may have taken effect on the lock service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Outcome {
    /// The operation did not happen.
    NotApplied,
    /// The operation may have happened: the request was sent and no answer came.
    Unknown,
}

impl Error {
    /// The operation failed, and certainly did not happen: nothing was sent, or the lock service
    /// has refused it.
    ///
    /// If that is not certain, use [`unknown`](Self::unknown). A caller cleans up nothing after an
    /// acquisition that did not happen, so a lease that was granted nevertheless would stay held.
    ///
    /// The error is about an acquire, and names no lock service, until [`during`](Self::during)
    /// sets both. A [`LockService`](crate::LockService) sets them in all errors of its backend.
    #[must_use]
    pub fn not_applied(kind: ErrorKind) -> Self {
        Self::new(kind, Outcome::NotApplied)
    }

    /// The operation failed, and may have happened nevertheless: it may have been sent, and no
    /// answer gives its result. An operation that changes nothing counts as one that did not
    /// happen.
    #[must_use]
    pub fn unknown(kind: ErrorKind) -> Self {
        Self::new(kind, Outcome::Unknown)
    }

    fn new(kind: ErrorKind, outcome: Outcome) -> Self {
        Self(Box::new(Inner {
            kind,
            operation: Operation::Acquire,
            backend: OURSELVES,
            outcome,
            resource: None,
            detail: None,
            retry_after: None,
            source: None,
        }))
    }

    /// The error if a grant had ended when it arrived. The grant is given back.
    pub(crate) fn too_late() -> Self {
        Self::not_applied(ErrorKind::Unavailable)
            .because("the grant arrived after the lease had ended; ask for a longer ttl")
    }

    /// Says that the operation may have happened, in an error of a part of it that did not happen:
    /// the parts before that part could not be undone.
    #[must_use]
    pub fn outcome_unknown(mut self) -> Self {
        self.0.outcome = Outcome::Unknown;
        self
    }

    /// Says that the operation did not happen, although errors of this kind may leave that open.
    #[must_use]
    pub fn outcome_not_applied(mut self) -> Self {
        self.0.outcome = Outcome::NotApplied;
        self
    }

    /// Names the operation that failed, and the kind of lock service.
    #[must_use]
    pub fn during(mut self, operation: Operation, backend: &'static str) -> Self {
        self.0.operation = operation;
        self.0.backend = backend;
        self
    }

    /// Names the resource.
    #[must_use]
    pub fn on(mut self, resource: &ResourceName) -> Self {
        self.0.resource = Some(resource.clone());
        self
    }

    /// Says in words what happened or what to do. The text must never contain a holder.
    #[must_use]
    pub fn because(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Sets how long to wait before trying again, see [`retry_after`](Self::retry_after).
    pub(crate) fn with_retry_after(mut self, time: Duration) -> Self {
        self.0.retry_after = Some(time);
        self
    }

    /// Keeps the underlying error.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// The kind of the failure.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Which operation failed.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.0.operation
    }

    /// The kind of lock service, such as `"redis"`.
    #[must_use]
    pub const fn backend(&self) -> &'static str {
        self.0.backend
    }

    /// Whether the operation may have taken effect nevertheless.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        self.0.operation.outcome(self.0.outcome)
    }

    /// After a [`ErrorKind::WaitTimeout`]: when the present lease ends unless it is renewed.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// Whether nothing happened and the same call may succeed a moment later: the lock service did
    /// not answer, the wait was over, the queue was full, or replicas were behind.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(self.outcome(), Outcome::NotApplied)
            && matches!(
                self.0.kind,
                ErrorKind::Unavailable
                    | ErrorKind::WaitTimeout
                    | ErrorKind::QueueFull
                    | ErrorKind::TooFewReplicas
            )
    }

    /// Whether the cause may pass by itself, whatever the result of this call: the lock service is
    /// starting, failing over or overloaded, or the grant has ended and another grant is possible.
    /// All other causes, such as an invalid name or a missing right, need a change by a person.
    ///
    /// Acquire afresh. To repeat the same call, ask [`is_retryable`](Self::is_retryable).
    #[must_use]
    pub const fn may_pass(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::Unavailable
                | ErrorKind::WaitTimeout
                | ErrorKind::QueueFull
                | ErrorKind::TooFewReplicas
                | ErrorKind::Released
                | ErrorKind::Lost
        )
    }

    /// The resource, if the operation was about a single resource.
    #[must_use]
    pub const fn resource(&self) -> Option<&ResourceName> {
        self.0.resource.as_ref()
    }
}

impl ErrorKind {
    const fn text(self) -> &'static str {
        match self {
            Self::InvalidInput => "invalid input",
            Self::Unsupported => "not supported",
            Self::Unavailable => "the lock service is not available",
            Self::Refused => "the lock service refused",
            Self::WaitTimeout => "held by another holder until the wait was over",
            Self::QueueFull => "too many wait for it already",
            Self::Released => "the acquisition has already ended, acquire afresh",
            Self::Lost => "the lease was lost",
            Self::FloorImplausible => "the floor is implausibly high",
            Self::CounterBroken => "the token counter is broken",
            Self::TokensExhausted => "the tokens are used up",
            Self::ConfigMismatch => "the lock service is configured differently",
            Self::TooFewReplicas => "too few replicas have the grant",
            Self::ShutDown => "the lock manager has been shut down, or its runtime has ended",
        }
    }
}

impl Operation {
    const fn text(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Acquire => "acquire",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Cancel => "cancel",
            Self::Inspect => "inspect",
            Self::List => "list",
            Self::ForceRelease => "force-release",
        }
    }
}

impl Operation {
    /// The outcome in an error of this operation. An operation that changes nothing has not
    /// happened, whatever became of the request.
    const fn outcome(self, outcome: Outcome) -> Outcome {
        match self {
            Self::Connect | Self::Inspect | Self::List => Outcome::NotApplied,
            _ => outcome,
        }
    }
}

impl Outcome {
    const fn text(self) -> &'static str {
        match self {
            Self::NotApplied => "it did not happen",
            Self::Unknown => "it may have taken effect",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.text())
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.backend, self.0.operation)?;
        if let Some(resource) = &self.0.resource {
            write!(f, " {:?}", resource.as_str())?;
        }
        write!(f, ": {}", self.0.kind)?;
        if let Some(detail) = &self.0.detail {
            write!(f, ": {detail}")?;
        }
        // The cause decides what to do. A server may send several lines.
        let cause = self.0.source.as_ref().map(ToString::to_string);
        let cause = cause.as_ref().and_then(|cause| cause.lines().next());
        let told = self.0.detail.as_deref().unwrap_or_default();
        if let Some(cause) = cause.filter(|cause| !told.contains(cause)) {
            write!(f, ": {cause}")?;
        }
        match self.outcome() {
            Outcome::NotApplied => Ok(()),
            unknown @ Outcome::Unknown => write!(f, " ({unknown})"),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("operation", &self.0.operation)
            .field("backend", &self.0.backend)
            .field("outcome", &self.outcome())
            .field("resource", &self.0.resource)
            .field("detail", &self.0.detail)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}

/// A name is checked before anything is sent, so the backend is not known yet.
impl From<InvalidName> for Error {
    fn from(error: InvalidName) -> Self {
        Self::not_applied(ErrorKind::InvalidInput).caused_by(error)
    }
}

/// A ttl is checked before anything is sent.
impl From<InvalidTtl> for Error {
    fn from(error: InvalidTtl) -> Self {
        Self::not_applied(ErrorKind::InvalidInput).caused_by(error)
    }
}

/// A note is checked before anything is sent.
impl From<InvalidMetadata> for Error {
    fn from(error: InvalidMetadata) -> Self {
        Self::not_applied(ErrorKind::InvalidInput).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches: an error that is retryable although the operation may have taken effect.
    #[test]
    fn only_what_certainly_did_not_happen_is_retryable() {
        let error = Error::not_applied;
        for kind in [
            ErrorKind::Unavailable,
            ErrorKind::WaitTimeout,
            ErrorKind::QueueFull,
            ErrorKind::TooFewReplicas,
        ] {
            assert!(error(kind).is_retryable(), "{kind}");
            assert!(!error(kind).outcome_unknown().is_retryable(), "{kind}");
        }
        for kind in [
            ErrorKind::InvalidInput,
            ErrorKind::Released,
            ErrorKind::Lost,
            ErrorKind::ShutDown,
        ] {
            assert!(!error(kind).is_retryable(), "{kind}");
        }
    }

    #[test]
    fn an_invalid_name_is_shown_with_the_rule() {
        let name = format!("my account {}", "x".repeat(300));
        let error = Error::from(ResourceName::new(name).unwrap_err()).to_string();
        assert!(
            error.contains("invalid resource name \"my account xxxx"),
            "{error}"
        );
        assert!(
            error.contains("300 bytes") || error.contains("at most 256"),
            "{error}"
        );
        assert!(error.len() < 200, "{error}");
        let error = Error::from(ResourceName::new("my account\n").unwrap_err()).to_string();
        let rule = "\"my account\\n\": byte 0x20 after 2 others is not allowed: use visible ASCII";
        assert!(error.contains(rule), "{error}");
    }
}
