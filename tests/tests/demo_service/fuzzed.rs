//! The gateway is compared with its own document: schemathesis makes up requests, right ones and
//! wrong ones, and compares every answer with the document.

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use e2e::python::environment;

use crate::gateway::Gateway;

const ADMIN_TOKEN: &str = "an-admin-token-of-the-tests";

/// The checks of every answer; the first two are ours.
const CHECKS: &str = "no_fault,EveryEndpointWorks,status_code_conformance,\
                      content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,unsupported_method,allow_header_conformance";

#[tokio::test]
async fn every_answer_is_as_the_document_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let arguments = ["--store", &store, "--admin-token", ADMIN_TOKEN];
    let gateway =
        Gateway::start_with_log(&[&arguments[..], &["--log", "error", "--unfenced"]].concat())
            .await;
    let (url, scratch) = (gateway.url.clone(), folder.path().to_owned());
    let output = tokio::task::spawn_blocking(move || fuzz(&url, &scratch));
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", gateway.log());
    // A run without a test would be a success, too.
    assert!(said.contains(" passed"), "{said}");
}

fn fuzz(url: &str, scratch: &Path) -> Output {
    let scratch_of_all = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let environment = environment(scratch_of_all, &contract().join("requirements.txt"));
    Command::new(environment.join("bin").join("schemathesis"))
        .arg("run")
        .arg(format!("{url}/openapi.json"))
        .args(["--header", &format!("Authorization: Bearer {ADMIN_TOKEN}")])
        .args(["--checks", CHECKS, "--continue-on-failure", "--no-color"])
        .args(["--max-examples", "10", "--seed", "1"])
        .args(["--request-timeout", "60"])
        .current_dir(scratch)
        .env("SCHEMATHESIS_HOOKS", "hooks")
        .env("PYTHONPATH", contract())
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("GATEWAY", url)
        .env("PALISADE_ADMIN_TOKEN", ADMIN_TOKEN)
        .env("NO_PROXY", "127.0.0.1")
        .output()
        .unwrap()
}

fn contract() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("contract")
}
