//! Every kind of problem has a page, and every problem its headers.

use std::{collections::HashSet, path::PathBuf, time::Duration};

use bytes::Bytes;
use fenced_http::{Problem, ProblemType};

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
    let slugs: HashSet<_> = ProblemType::ALL.iter().map(|kind| kind.slug()).collect();
    assert_eq!(slugs.len(), ProblemType::ALL.len());
    let plain = |slug: &str| {
        slug.bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
    };
    assert!(slugs.into_iter().all(plain));
}

#[test]
fn retry_after_is_never_earlier_than_it_was_meant() {
    for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (29_500, "30")] {
        let problem =
            Problem::new(ProblemType::STORE_UNAVAILABLE).retry_after(Duration::from_millis(millis));
        let response = problem.to_response::<Bytes>();
        assert_eq!(response.headers()["retry-after"], seconds, "{millis} ms");
    }
}
