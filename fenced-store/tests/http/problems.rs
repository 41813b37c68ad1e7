//! Every error of the store becomes a problem document.

use std::{borrow::Cow, error::Error};

use bytes::Bytes;
use fenced_http::Problem;
use fenced_store::{FenceError, FencedLockError};
use http::Response;
use lock_core::{ErrorKind as LockErrorKind, FencingToken, Issuer, Operation, ResourceName};
use serde_json::Value;
use sqlx::error::{DatabaseError, ErrorKind};

fn resource() -> ResourceName {
    ResourceName::new("account:42").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn database() -> sqlx::Error {
    sqlx::Error::Protocol("password=hunter2".into())
}

fn respond<'e, E>(error: &'e E) -> (Response<()>, Value)
where
    Problem: From<&'e E>,
{
    let (parts, body) = Problem::from(error).to_response::<Bytes>().into_parts();
    (
        Response::from_parts(parts, ()),
        serde_json::from_slice(&body).unwrap(),
    )
}

/// The answer of a service that acquires the lease itself.
/// Catches: advice about a lease to a client that has none.
#[test]
fn the_advice_for_a_client_without_a_lease_is_to_repeat_its_request_and_not_to_acquire() {
    let lock = |kind| lock_core::Error::not_applied(kind);
    let release = lock_core::Error::unknown(LockErrorKind::Unavailable);
    let release = release.during(Operation::Release, "redis");
    let issuer = |name| Issuer::new(name).unwrap();
    let renewal = lock_core::Error::not_applied(LockErrorKind::Lost);
    let renewal = renewal.during(Operation::Renew, "redis");
    let cases: [(FencedLockError, u16); 12] = [
        (lock(LockErrorKind::WaitTimeout).into(), 503),
        (lock(LockErrorKind::QueueFull).into(), 503),
        (lock(LockErrorKind::Unavailable).into(), 503),
        (release.into(), 504),
        (renewal.into(), 504),
        (FenceError::Terminated { source: database() }.into(), 503),
        (FenceError::Db { source: database() }.into(), 503),
        (
            FenceError::stale(resource(), token(33), token(34)).into(),
            503,
        ),
        (FenceError::mark_lost(resource(), token(33)).into(), 503),
        (
            FenceError::Busy {
                source: sqlx::Error::PoolTimedOut,
            }
            .into(),
            503,
        ),
        (
            FenceError::wrong_issuer(resource(), issuer("a"), issuer("b")).into(),
            500,
        ),
        (FenceError::CommitUnknown { source: database() }.into(), 504),
    ];
    for (error, status) in cases {
        let (response, problem) = respond(&error);
        assert_eq!(response.status(), status, "{error}");
        assert_eq!(
            response.headers().contains_key("retry-after"),
            status == 503,
            "{problem}"
        );
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            !detail.contains("acquire") && !detail.contains("token"),
            "{detail}"
        );
        assert_eq!(problem.get("token"), None, "{problem}");
        assert_eq!(problem.get("outcome").is_some(), status == 504, "{problem}");
    }
}

type Expected = (FenceError, (u16, &'static str, Option<&'static str>));

fn refusals() -> [Expected; 5] {
    let (resource, presented) = (resource(), token(33));
    let (a, b) = (Issuer::new("a").unwrap(), Issuer::new("b").unwrap());
    [
        (
            FenceError::stale(resource.clone(), presented, token(34)),
            (412, "fencing-token-stale", None),
        ),
        (
            FenceError::duplicate_token(resource.clone(), presented),
            (409, "fencing-token-holder-conflict", None),
        ),
        (
            FenceError::not_claimed(resource.clone(), presented),
            (412, "fencing-token-not-claimed", None),
        ),
        (
            FenceError::mark_lost(resource.clone(), presented),
            (412, "fencing-mark-lost", None),
        ),
        (
            FenceError::wrong_issuer(resource, a, b),
            (403, "fencing-token-wrong-issuer", None),
        ),
    ]
}

fn failures() -> [Expected; 8] {
    let unavailable = (503, "store-unavailable", Some("1"));
    let fault = (500, "fencing-service-fault", None);
    let migration = sqlx::migrate::MigrateError::VersionMissing(1);
    let source = database;
    [
        (FenceError::Busy { source: source() }, unavailable),
        (FenceError::Serialization { source: source() }, unavailable),
        (FenceError::Terminated { source: source() }, unavailable),
        (FenceError::Db { source: source() }, unavailable),
        (
            FenceError::CommitUnknown { source: source() },
            (504, "outcome-unknown", None),
        ),
        (FenceError::Aborted, fault),
        (FenceError::NotMigrated { source: source() }, fault),
        (FenceError::Migration { source: migration }, fault),
    ]
}

#[test]
fn every_error_of_the_store_has_its_status() {
    for (error, (status, slug, retry_after)) in refusals().into_iter().chain(failures()) {
        let (response, problem) = respond(&error);
        assert_eq!(response.status(), status, "{error}");
        assert_eq!(problem["status"], status, "{error}");
        assert_eq!(
            problem["type"],
            format!("urn:palisade:problem:{slug}"),
            "{error}"
        );
        let header = response
            .headers()
            .get("retry-after")
            .map(|it| it.to_str().unwrap());
        assert_eq!(header, retry_after, "{error}");
        assert_eq!(response.headers()["cache-control"], "no-store");
        // A write after the end of an aborted transaction may be stored.
        let is_unknown = status == 504 || matches!(error, FenceError::Aborted);
        assert_eq!(problem["outcome"] == "unknown", is_unknown, "{problem}");
        assert!(
            !problem.to_string().contains("hunter2"),
            "the message of the database: {problem}"
        );
        assert_eq!(
            error.is_fenced(),
            response.status().is_client_error(),
            "{error}"
        );
    }
}

/// An error of a database that speaks SQLSTATE.
#[derive(Debug)]
struct Told(&'static str);

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Told {}

impl DatabaseError for Told {
    fn message(&self) -> &str {
        self.0
    }

    fn code(&self) -> Option<Cow<'_, str>> {
        Some(self.0.into())
    }

    fn as_error(&self) -> &(dyn Error + Send + Sync + 'static) {
        self
    }

    fn as_error_mut(&mut self) -> &mut (dyn Error + Send + Sync + 'static) {
        self
    }

    fn into_error(self: Box<Self>) -> Box<dyn Error + Send + Sync + 'static> {
        self
    }

    fn kind(&self) -> ErrorKind {
        ErrorKind::Other
    }
}

/// A repetition helps only if the database is in trouble.
#[test]
fn a_database_in_trouble_is_503_and_a_service_without_rights_is_500() {
    for (status, states) in [
        (503, &["08006", "53100", "57P03", "58030", "25006"][..]),
        (500, &["42501", "42601", "28P01", "3D000", "22003", "XX000"]),
    ] {
        for state in states {
            let source = sqlx::Error::Database(Box::new(Told(state)));
            let (response, _) = respond(&FenceError::Db { source });
            assert_eq!(response.status(), status, "{state}");
        }
    }
}

/// A client whose acquire failed has no token yet.
#[test]
fn a_busy_store_asks_for_the_same_request_again_and_speaks_of_no_token() {
    for source in [sqlx::Error::PoolTimedOut, refused()] {
        let (_, problem) = respond(&FenceError::from(source));
        let detail = problem["detail"].as_str().unwrap();
        assert_eq!(
            detail,
            "the store is busy or down: send the same request again"
        );
    }
}

fn refused() -> sqlx::Error {
    std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()
}
