//! Dependencies point one way, and nobody pays for what he did not ask for.

use std::{collections::BTreeSet, fs};

use e2e::project::{cargo, root};
use serde_json::Value;

/// The crates that a user of one of our packages builds with these features.
fn tree(package: &str, features: &str) -> BTreeSet<String> {
    let listed = cargo(&[
        "tree",
        "--locked",
        "--package",
        package,
        "--no-default-features",
        "--features",
        features,
        "--edges",
        "normal,build",
        "--prefix",
        "none",
        "--format",
        "{p}",
    ]);
    let name = |line: &str| line.split(' ').next().map(str::to_owned);
    listed.lines().filter_map(name).collect()
}

/// All features of a package that users may name, but for those in `without`.
fn features(package: &str, without: &[&str]) -> String {
    let packages = packages();
    let found = packages
        .iter()
        .find(|found| found["name"] == package)
        .unwrap();
    let named = found["features"].as_object().unwrap().keys();
    let kept: Vec<_> = named
        .map(String::as_str)
        .filter(|name| *name != "default" && !without.contains(name))
        .collect();
    kept.join(",")
}

/// The workspace's packages as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// Panics with the crates among `crates` that are in the tree. A name stands for its family:
/// `sqlx` for `sqlx-core` too.
fn assert_without(package: &str, features: &str, crates: &[&str]) {
    let found: Vec<_> = tree(package, features)
        .into_iter()
        .filter(|name| {
            let is = |family: &str| name.strip_prefix(family).is_some_and(starts_no_longer_word);
            crates.iter().copied().any(is)
        })
        .collect();
    assert!(
        found.is_empty(),
        "{package} with features `{features}` pulls in {found:?}"
    );
}

fn starts_no_longer_word(rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('-')
}

/// The clients of lock services.
const CLIENTS: [&str; 3] = ["redis", "tonic", "zookeeper-client"];

#[test]
fn lock_core_has_no_driver_of_any_server() {
    let all = features("lock-core", &[]);
    assert!(
        tree("lock-core", &all).contains("metrics"),
        "the tree does not show features"
    );
    assert_without("lock-core", &all, &CLIENTS);
    assert_without("lock-core", &all, &["sqlx", "axum", "tower", "hyper"]);
}

#[test]
fn a_lock_service_brings_its_own_client_and_no_other() {
    for (package, client) in [
        ("palisade-redis", "redis"),
        ("palisade-etcd", "tonic"),
        ("palisade-zookeeper", "zookeeper-client"),
    ] {
        let all = features(package, &[]);
        assert!(tree(package, &all).contains(client), "{package}");
        let others: Vec<_> = CLIENTS.into_iter().filter(|one| *one != client).collect();
        assert_without(package, &all, &others);
        assert_without(package, &all, &["sqlx", "axum"]);
    }
    assert_without("palisade-cohort", "", &CLIENTS);
}

#[test]
fn who_depends_on_palisade_gets_what_its_features_name_and_nothing_else() {
    let drivers = ["sqlx", "axum", "tower", "hyper"];
    assert_without("palisade", "", &CLIENTS);
    assert_without("palisade", "", &drivers);
    assert_without("palisade", "redis", &["tonic", "zookeeper-client", "sqlx"]);
    assert_without("palisade", "postgres", &CLIENTS);
    assert!(tree("palisade", "redis,postgres").contains("sqlx-postgres"));
}

#[test]
fn fenced_store_pulls_in_no_client_of_a_lock_service() {
    let all = features("fenced-store", &[]);
    assert!(
        tree("fenced-store", &all).contains("sqlx"),
        "the tree does not show features"
    );
    assert_without(
        "fenced-store",
        &all,
        &["redis", "tonic", "zookeeper-client"],
    );
}

#[test]
fn who_only_sends_or_checks_a_header_compiles_no_sql() {
    let all = features("fenced-http", &[]);
    assert!(
        tree("fenced-http", &all).contains("axum-core"),
        "the tree does not show features"
    );
    assert_without("fenced-http", &all, &["sqlx", "redis", "tonic"]);
    assert_without("fenced-http", "ed25519,reqwest", &["axum"]);
    assert_without("fenced-http", "axum", &["reqwest", "hyper"]);
    assert_without("palisade", "axum,ed25519,reqwest", &["sqlx"]);
}

#[test]
fn no_database_comes_without_being_asked_for() {
    let drivers = ["sqlx-postgres", "sqlx-sqlite", "sqlx-mysql", "libsqlite3"];
    assert_without("fenced-store", "", &drivers);
    assert_without(
        "fenced-store",
        "postgres",
        &["sqlx-sqlite", "sqlx-mysql", "libsqlite3"],
    );
    assert_without("fenced-store", "sqlite", &["sqlx-postgres", "sqlx-mysql"]);
    assert_without(
        "fenced-store",
        "mysql",
        &["sqlx-postgres", "sqlx-sqlite", "libsqlite3"],
    );
}

/// What tests may have from anywhere.
const TEST_ONLY: [&str; 5] = [
    "e2e",
    "fenced-store",
    "lock-testing",
    "palisade",
    "palisade-redis",
];

#[test]
fn packages_depend_in_one_direction() {
    let services = ["cohort", "etcd", "postgres", "redis", "zookeeper"];
    let services = services.map(|name| format!("palisade-{name}"));
    let is_service = |name: &str| services.iter().any(|service| service == name);
    let allowed = |package: &str, on: &str| match package {
        "clock-shim" | "lock-core" | "models" => false,
        "lock-testing" | "fenced-http" => on == "lock-core",
        "fenced-store" => matches!(on, "lock-core" | "fenced-http"),
        "palisade" => is_service(on) || matches!(on, "lock-core" | "fenced-http" | "fenced-store"),
        "palisade-cli" => matches!(
            on,
            "palisade" | "lock-core" | "fenced-http" | "fenced-store"
        ),
        "e2e" => !matches!(on, "e2e" | "bench"),
        "bench" => on != "bench",
        service if is_service(service) => on == "lock-core",
        _ => panic!("say here what {package} may depend on"),
    };
    // Tests may go round in a circle, but for those of the whole.
    let allowed_for_tests =
        |package: &str, on: &str| allowed(package, on) || TEST_ONLY.contains(&on);
    let packages = packages();
    let ours: BTreeSet<_> = packages
        .iter()
        .map(|found| found["name"].as_str().unwrap())
        .collect();
    for package in &packages {
        let name = package["name"].as_str().unwrap();
        for dependency in package["dependencies"].as_array().unwrap() {
            let on = dependency["name"].as_str().unwrap();
            let allowed = match dependency["kind"].as_str() {
                Some("dev") => allowed_for_tests(name, on),
                _ => allowed(name, on),
            };
            assert!(
                !ours.contains(on) || allowed,
                "{name} must not depend on {on}"
            );
        }
    }
}

#[test]
fn no_feature_is_on_by_default() {
    for package in packages() {
        let default = &package["features"]["default"];
        let none = default.as_array().is_none_or(Vec::is_empty);
        assert!(none, "{} switches on {default}", package["name"]);
    }
}

/// A crate that asks for more would break what the manifests and the READMEs promise.
#[test]
fn no_dependency_needs_a_newer_rust_than_is_promised() {
    let about = cargo(&["-vV"]);
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    // Only what is built here, since the rest may not have been downloaded.
    let metadata = cargo(&[
        "metadata",
        "--locked",
        "--all-features",
        "--format-version",
        "1",
        "--filter-platform",
        host.unwrap(),
    ]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let (ours, others): (Vec<_>, Vec<_>) = packages.iter().partition(|one| one["source"].is_null());
    let asked = others
        .iter()
        .filter_map(|one| Some((rust_version(one)?, &one["name"])));
    let (least, by) = asked.max_by_key(|(least, _)| least.clone()).unwrap();
    for package in ours {
        let promised = rust_version(package).unwrap();
        assert!(
            promised >= least,
            "{}: {by} asks for {least:?}",
            package["name"]
        );
    }
}

/// The three numbers of the `rust-version` in a package's manifest, if it has one.
fn rust_version(package: &Value) -> Option<Vec<u32>> {
    let numbers = package["rust_version"].as_str()?.split('.');
    let mut numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    numbers.resize(3, 0);
    Some(numbers)
}

#[test]
fn readmes_say_which_rust_is_needed() {
    let packages = packages();
    let promised = packages[0]["rust_version"].as_str().unwrap();
    let says = [
        format!("needs Rust {promised} "),
        format!("Rust version is {promised}."),
    ];
    for readme in ["README.md", "palisade/README.md", "fenced-store/README.md"] {
        let text = fs::read_to_string(root().join(readme)).unwrap();
        assert!(
            says.iter().any(|says| text.contains(says)),
            "{readme}: {promised} is needed"
        );
    }
}

/// The programs are built as `cargo install --path demo-service` does: nobody else asks for their
/// features. Without TLS sqlx would silently connect in plain text.
#[test]
fn the_programs_have_tls_to_lock_services_and_databases() {
    let by = |package: &str| {
        let listed = cargo(&[
            "tree",
            "--locked",
            "--package",
            "palisade-cli",
            "--edges",
            "normal",
            "--invert",
            package,
            "--depth",
            "1",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ]);
        let name = |line: &str| line.split(' ').next().map(str::to_owned);
        listed.lines().filter_map(name).collect::<BTreeSet<_>>()
    };
    let (tls, roots) = (by("tokio-rustls"), by("rustls-native-certs"));
    for client in ["redis", "tonic"] {
        assert!(tls.contains(client), "{client}: {tls:?}");
        assert!(roots.contains(client), "{client}: {roots:?}");
    }
    assert!(by("rustls").contains("sqlx-core") && roots.contains("sqlx-core"));
}
