//! Every kind of problem has a section in docs/errors.md, and every problem has its headers.

use std::{path::PathBuf, time::Duration};

use bytes::Bytes;
use fenced_http::{Problem, ProblemType};

#[test]
fn every_kind_of_problem_has_a_section_that_names_it() {
    let page = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../docs/errors.md");
    let page = std::fs::read_to_string(page).unwrap();
    for kind in ProblemType::ALL {
        let slug = kind.slug();
        let heading = format!("\n## {slug}\n\n");
        let (_, section) = page.split_once(&heading).expect(slug);
        let status = kind.status();
        let first = format!("**{}, \"{}\".**", status.as_str(), kind.title());
        assert!(
            section.starts_with(&first),
            "{slug} does not begin with {first}"
        );
    }
}

/// Catches: a pause that is rounded down.
#[test]
fn retry_after_is_never_earlier_than_it_was_meant() {
    for (millis, seconds) in [(0, "1"), (1, "1"), (1000, "1"), (1001, "2"), (29_500, "30")] {
        let problem =
            Problem::new(ProblemType::STORE_UNAVAILABLE).retry_after(Duration::from_millis(millis));
        let response = problem.to_response::<Bytes>();
        assert_eq!(response.headers()["retry-after"], seconds, "{millis} ms");
    }
}
