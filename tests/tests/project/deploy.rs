//! The files of `deploy` and of the CI give no secret away. The attacks that need a running gateway
//! are in `demo_service`, in the modules `rights`.

use std::fs;

use e2e::project::{root, tracked_files};

fn text(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

fn has_line(text: &str, line: &str) -> bool {
    text.lines().any(|it| it.trim() == line)
}

/// Catches: signing keys in the history, or in a layer of the image, where every user who pulls it
/// finds them.
#[test]
fn no_key_gets_into_the_repository_or_the_image() {
    assert!(has_line(&text(".gitignore"), "/deploy/signing-keys"));
    let ignored = text(".dockerignore");
    let rules: Vec<_> = ignored
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(rules[0], "*", "the rest names what is let through");
    let built_from = |path: &str| {
        let through = rules.iter().filter_map(|rule| rule.strip_prefix('!'));
        through
            .into_iter()
            .any(|rule| path == rule || path.starts_with(&format!("{rule}/")))
    };
    for secret in ["deploy/signing-keys", "target", ".git", "accounts.db"] {
        assert!(!built_from(secret), "{secret}");
    }
    assert!(
        rules.contains(&"**/target"),
        "a folder that is let through has builds, too"
    );
    // The control: the image gets all files that the workspace needs.
    let manifests = tracked_files(Some("toml"));
    let manifests = manifests
        .iter()
        .filter(|file| file.path.ends_with("Cargo.toml"));
    for manifest in manifests {
        let path = manifest.path.to_str().unwrap();
        assert!(built_from(path), "{path}");
    }
}

/// The owner of an action can move a tag, but cannot change a commit.
/// Catches: an action that has other content next week.
#[test]
fn actions_are_named_by_commit() {
    let workflow = text(".github/workflows/ci.yml");
    let uses = workflow
        .lines()
        .filter_map(|line| line.split_once("uses: "));
    let uses: Vec<_> = uses.map(|(_, action)| action).collect();
    assert!(uses.len() > 5);
    for action in uses {
        let (_, commit) = action.split_once('@').unwrap();
        let (commit, tag) = commit.split_once(" # ").unwrap_or((commit, ""));
        let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(commit.len() == 40 && is_hex, "{action}");
        assert!(
            tag.starts_with('v'),
            "{action} does not say which version that is"
        );
    }
    assert!(workflow.contains("cargo-deny-action@"));
}

/// Catches: a reload that reads the copy of the keys from the start.
#[test]
fn a_reload_by_systemd_reads_the_keys_that_an_operator_has_changed() {
    let unit = text("deploy/palisade.service");
    assert!(unit.contains("ExecReload=/bin/kill -HUP $MAINPID"));
    let settings = unit.lines().filter(|line| !line.starts_with('#'));
    let copies = ["LoadCredential", "SetCredential", "ImportCredential"];
    for setting in settings {
        assert!(
            !copies.iter().any(|copy| setting.starts_with(copy)),
            "{setting}"
        );
    }
    assert!(!unit.contains("=/run/credentials"), "it names a copy");
}

/// Catches: a pod that cannot read its keys, or that every other pod can reach.
#[test]
fn pods_can_read_their_secrets_and_be_reached_by_chosen_pods_only() {
    let manifests = text("deploy/kubernetes.yaml");
    let user = manifests
        .split_once("runAsUser: ")
        .unwrap()
        .1
        .lines()
        .next()
        .unwrap();
    assert!(has_line(&manifests, "defaultMode: 0440"));
    assert!(has_line(&manifests, &format!("fsGroup: {user}")));
    let policy = manifests.split_once("kind: NetworkPolicy\n").unwrap().1;
    assert!(has_line(policy, "policyTypes: [Ingress, Egress]"));
    assert!(policy.contains("- from:\n        - podSelector:\n"));
    // Not in the environment, which more processes can read than a file.
    assert!(!manifests.contains("secretKeyRef"));
}

/// Catches: a gateway that is given all rights of the database server.
#[test]
fn nothing_logs_in_as_the_superuser_of_compose() {
    let compose = text("deploy/compose.yaml");
    let urls: Vec<_> = compose
        .lines()
        .filter(|line| line.contains("postgres://"))
        .collect();
    assert_eq!(urls.len(), 2, "{urls:?}");
    for url in urls {
        assert!(
            url.contains("//fence_owner:") || url.contains("//gateway:"),
            "{url}"
        );
    }
}
