//! Dependencies point one way, and a user builds only the crates of the requested features.

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

/// All features of a package that users may name.
fn all_features(package: &str) -> String {
    let packages = packages();
    let package = packages.iter().find(|found| found["name"] == package);
    let named = package.unwrap()["features"].as_object().unwrap().keys();
    let named = named.filter(|name| *name != "default").cloned();
    named.collect::<Vec<_>>().join(",")
}

/// The workspace's packages as `cargo metadata` describes them.
fn packages() -> Vec<Value> {
    let metadata = cargo(&["metadata", "--locked", "--no-deps", "--format-version", "1"]);
    let metadata: Value = serde_json::from_str(&metadata).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}

/// A package, its features (`*` for all), a crate that it has with these features, and families of
/// crates of which it has none: `sqlx` stands for `sqlx-core`, too.
const TREES: &str = "
    lock-core          | *        | metrics          | redis tonic zookeeper-client sqlx axum hyper
    palisade-redis     | *        | redis            | tonic zookeeper-client sqlx axum
    palisade-redis     | *        | redis            | palisade-redlock
    palisade-redlock   | *        | redis            | tonic zookeeper-client sqlx axum
    palisade-etcd      | *        | tonic            | redis zookeeper-client sqlx axum
    palisade-zookeeper | *        | zookeeper-client | redis tonic sqlx axum
    palisade-mysql     | *        | sqlx-mysql       | redis zookeeper-client sqlx-postgres axum
    palisade-postgres  | *        | sqlx-postgres    | redis tonic zookeeper-client sqlx-sqlite axum
    palisade-sqlite    | *        | sqlx-sqlite      | redis zookeeper-client sqlx-postgres axum
    lock-testing       | *        | lock-core        | redis tonic zookeeper-client sqlx axum
    palisade-lock      |          | lock-core        | redis tonic zookeeper-client sqlx axum hyper
    palisade-lock      | redis    | redis            | palisade-redlock tonic zookeeper-client sqlx
    palisade-lock      | redlock  | palisade-redlock | tonic zookeeper-client sqlx
    palisade-lock      | mysql    | palisade-mysql   | redis tonic zookeeper-client sqlx-postgres
    palisade-lock      | postgres | sqlx-postgres    | redis tonic zookeeper-client sqlx-sqlite
    palisade-lock      | sqlite   | palisade-sqlite  | redis tonic zookeeper-client sqlx-postgres
    palisade-lock      | axum,ed25519,reqwest | axum-core | sqlx
    fenced-store       | *        | sqlx             | redis tonic zookeeper-client croner jiff
    fenced-store       |          | sqlx-core        | sqlx-postgres sqlx-sqlite sqlx-mysql
    fenced-store       | postgres | sqlx-postgres    | sqlx-sqlite sqlx-mysql libsqlite3
    fenced-store       | sqlite   | sqlx-sqlite      | sqlx-postgres sqlx-mysql
    fenced-store       | mysql    | sqlx-mysql       | sqlx-postgres sqlx-sqlite libsqlite3
    palisade-gateway   | postgres | sqlx-postgres    | sqlx-sqlite sqlx-mysql redis tonic reqwest
    palisade-gateway   | sqlite   | sqlx-sqlite      | sqlx-postgres sqlx-mysql redis tonic reqwest
    fenced-jobs        |          | sqlx-core        | sqlx-postgres sqlx-sqlite sqlx-mysql croner
    fenced-jobs        | *        | croner           | sqlx-postgres sqlx-sqlite axum redis tonic
    palisade-lock      | jobs     | fenced-jobs      | croner jiff sqlx-postgres sqlx-sqlite
    fenced-http        | *        | axum-core        | sqlx redis tonic
    fenced-http        | ed25519,reqwest | reqwest   | axum
    fenced-http        | axum     | axum-core        | reqwest hyper
";

/// Catches: a feature that brings the client of another lock service, another driver or another
/// framework.
#[test]
fn each_feature_brings_what_its_name_says_and_nothing_else() {
    for row in TREES.trim().lines() {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let [package, features, with, without] = cells[..] else {
            panic!("four cells: {row}")
        };
        let features = match features {
            "*" => all_features(package),
            some => some.to_owned(),
        };
        let tree = tree(package, &features);
        assert!(tree.contains(with), "{package}, `{features}`: no {with}");
        let is_of = |name: &str, family: &str| {
            let rest = name.strip_prefix(family);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let of_any = |name: &&String| without.split(' ').any(|family| is_of(name, family));
        let found = tree.iter().find(of_any);
        assert_eq!(found, None, "{package}, `{features}`");
    }
}

/// The lock services. Each has a package.
const SERVICES: [&str; 7] = [
    "etcd",
    "mysql",
    "postgres",
    "redis",
    "redlock",
    "sqlite",
    "zookeeper",
];

/// The packages that tests may use from anywhere.
const TEST_ONLY: [&str; 5] = [
    "e2e",
    "fenced-jobs",
    "fenced-store",
    "lock-testing",
    "palisade-lock",
];

/// Catches: a library that needs the program, or a lock service that needs another one.
#[test]
fn packages_depend_in_one_direction() {
    let services = SERVICES.map(|name| format!("palisade-{name}"));
    let is_service = |name: &str| services.iter().any(|service| service == name);
    let allowed = |package: &str, on: &str| match package {
        "clock-shim" | "lock-core" => false,
        "lock-testing" | "fenced-http" | "models" => on == "lock-core",
        "fenced-store" => matches!(on, "lock-core" | "fenced-http"),
        "fenced-jobs" => matches!(on, "lock-core" | "fenced-store"),
        "palisade-lock" => {
            is_service(on)
                || matches!(
                    on,
                    "lock-core" | "lock-testing" | "fenced-http" | "fenced-store" | "fenced-jobs"
                )
        }
        "palisade-gateway" => matches!(on, "lock-core" | "fenced-http" | "fenced-store"),
        "palisade-cli" => matches!(
            on,
            "palisade-gateway"
                | "palisade-lock"
                | "lock-core"
                | "fenced-http"
                | "fenced-store"
                | "fenced-jobs"
        ),
        "palisade-demo" => matches!(
            on,
            "palisade-cli"
                | "palisade-gateway"
                | "lock-core"
                | "fenced-http"
                | "fenced-store"
                | "fenced-jobs"
        ),
        "examples" => matches!(on, "palisade-lock" | "lock-testing"),
        "e2e" => !matches!(on, "e2e" | "bench" | "examples" | "simulation"),
        "bench" => !matches!(on, "bench" | "simulation"),
        "simulation" => matches!(
            on,
            "lock-core" | "lock-testing" | "fenced-http" | "fenced-store" | "fenced-jobs"
        ),
        "palisade-redlock" => matches!(on, "lock-core" | "palisade-redis"),
        service if is_service(service) => on == "lock-core",
        _ => panic!("say here what {package} may depend on"),
    };
    // Tests may depend in a circle, except the tests of the whole project.
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

/// Catches: a dependency for a feature that a user did not ask for.
#[test]
fn no_feature_is_on_by_default() {
    for package in packages() {
        let default = &package["features"]["default"];
        let none = default.as_array().is_none_or(Vec::is_empty);
        assert!(none, "{} switches on {default}", package["name"]);
    }
}

/// Catches: a crate that asks for more than the manifests and the READMEs promise.
#[test]
fn no_dependency_needs_a_newer_rust_than_is_promised() {
    let about = cargo(&["-vV"]);
    let host = about.lines().find_map(|line| line.strip_prefix("host: "));
    // Only crates that are built here, because others may not have been downloaded.
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

/// Catches: a README that promises an older Rust than its manifest.
#[test]
fn readmes_say_which_rust_is_needed() {
    let packages = packages();
    let promised = packages[0]["rust_version"].as_str().unwrap();
    let says = [
        format!("needs Rust {promised} "),
        format!("Rust version is {promised}."),
    ];
    for readme in [
        "README.md",
        "palisade/README.md",
        "fenced-store/README.md",
        "fenced-jobs/README.md",
    ] {
        let text = fs::read_to_string(root().join(readme)).unwrap();
        assert!(
            says.iter().any(|says| text.contains(says)),
            "{readme}: {promised} is needed"
        );
    }
}

/// The programs are built as `cargo install --path palisade-cli` does: no other package asks for
/// their features. Without TLS sqlx would silently connect in plain text.
/// Catches: a program that connects in plain text, or lacks a service.
#[test]
fn the_programs_have_all_lock_services_and_tls_to_them_and_to_databases() {
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
    for service in SERVICES {
        let users = by(&format!("palisade-{service}"));
        assert!(users.contains("palisade-lock"), "{service}: {users:?}");
    }
}
