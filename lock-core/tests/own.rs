//! The lock service that the README shows passes the conformance cases.

#[path = "own/service.rs"]
mod service;

use lock_testing::conformance::RealTime;

use self::service::MapBackend;

lock_testing::conformance_tests!(map, RealTime::new(MapBackend::new()));

/// Catches: the lock service in the README differs from the lock service that is tested.
#[test]
fn the_readme_shows_it() {
    let (readme, service) = (include_str!("../README.md"), include_str!("own/service.rs"));
    assert!(
        readme.contains(service),
        "copy lock-core/tests/own/service.rs into it"
    );
    assert!(service.lines().count() <= 180);
}
