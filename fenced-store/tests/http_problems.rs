//! Every kind of problem has a page, and every error of the store is a problem.
#![cfg(feature = "tower")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::{collections::HashSet, path::PathBuf};

use bytes::Bytes;
use fenced_store::{
    FenceError,
    http::{Problem, ProblemType},
};
use http::Response;
use lock_core::{FencingToken, Issuer, ResourceName};
use serde_json::{Value, json};

fn resource() -> ResourceName {
    ResourceName::new("account:42").unwrap()
}

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn database() -> sqlx::Error {
    sqlx::Error::Protocol("password=hunter2".into())
}

fn respond(error: &FenceError) -> (Response<()>, Value) {
    let (parts, body) = Problem::from(error).to_response::<Bytes>().into_parts();
    (
        Response::from_parts(parts, ()),
        serde_json::from_slice(&body).unwrap(),
    )
}

#[test]
fn every_kind_of_problem_has_a_page_that_names_it() {
    let pages = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/errors");
    for kind in ProblemType::ALL {
        let path = pages.join(kind.slug()).with_extension("md");
        let page = std::fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let uri = kind.uri();
        let status = kind.status();
        assert!(
            page.contains(&uri),
            "{} does not name {uri}",
            path.display()
        );
        assert!(
            page.contains(status.as_str()),
            "{} does not name {status}",
            path.display()
        );
        assert!(
            page.contains(kind.title()),
            "{} has another title",
            path.display()
        );
        for part in ["## What it means", "## What to do", "## Example"] {
            assert!(
                page.contains(part),
                "{} has no part {part:?}",
                path.display()
            );
        }
    }
}

#[test]
fn slugs_are_unique_and_plain() {
    let slugs: HashSet<_> = ProblemType::ALL.map(ProblemType::slug).into();
    assert_eq!(slugs.len(), ProblemType::ALL.len());
    let plain = |slug: &str| {
        slug.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    assert!(slugs.into_iter().all(plain));
}

#[test]
fn every_error_of_the_store_has_its_status() {
    let (resource, presented) = (resource(), token(33));
    let (a, b) = (Issuer::new("a").unwrap(), Issuer::new("b").unwrap());
    let migration = sqlx::migrate::MigrateError::VersionMissing(1);
    let table = [
        (
            FenceError::Stale {
                resource: resource.clone(),
                presented,
                high_water: token(34),
            },
            (412, "fencing-token-stale", None),
        ),
        (
            FenceError::DuplicateToken {
                resource: resource.clone(),
                presented,
            },
            (409, "fencing-token-holder-conflict", None),
        ),
        (
            FenceError::NotClaimed {
                resource: resource.clone(),
                presented,
            },
            (412, "fencing-token-not-claimed", None),
        ),
        (
            FenceError::MarkLost {
                resource: resource.clone(),
                presented,
            },
            (412, "fencing-mark-lost", None),
        ),
        (
            FenceError::WrongIssuer {
                resource,
                presented: a,
                current: b,
            },
            (403, "fencing-token-wrong-issuer", None),
        ),
        (
            FenceError::Busy { source: database() },
            (503, "store-unavailable", Some("1")),
        ),
        (
            FenceError::Serialization { source: database() },
            (503, "store-unavailable", Some("1")),
        ),
        (
            FenceError::Terminated { source: database() },
            (503, "store-unavailable", Some("1")),
        ),
        (
            FenceError::Db { source: database() },
            (503, "store-unavailable", Some("1")),
        ),
        (
            FenceError::CommitUnknown { source: database() },
            (504, "outcome-unknown", None),
        ),
        (FenceError::Aborted, (500, "fencing-service-fault", None)),
        (
            FenceError::NotMigrated { source: database() },
            (500, "fencing-service-fault", None),
        ),
        (
            FenceError::Migration { source: migration },
            (500, "fencing-service-fault", None),
        ),
    ];
    for (error, (status, slug, retry_after)) in table {
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
        assert!(
            !problem.to_string().contains("hunter2"),
            "what the database said: {problem}"
        );
        assert_eq!(
            error.is_fenced(),
            response.status().is_client_error(),
            "{error}"
        );
    }
}

#[test]
fn a_stale_token_is_told_what_to_do() {
    let (presented, high_water) = (token(33), token(34));
    let (_, problem) = respond(&FenceError::Stale {
        resource: resource(),
        presented,
        high_water,
    });
    assert_eq!(
        problem,
        json!({
            "type": "urn:palisade:problem:fencing-token-stale",
            "title": "The fencing token is stale",
            "status": 412,
            "detail": "a later holder has taken over and this token will never be accepted again: \
                       acquire the lock again and start afresh",
            "resource": "account:42",
            "token": 33,
        })
    );
}

#[test]
fn an_unknown_outcome_says_so_to_programs() {
    let (_, problem) = respond(&FenceError::CommitUnknown { source: database() });
    assert_eq!(problem["outcome"], "unknown");
}
