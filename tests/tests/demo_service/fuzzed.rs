//! The gateway against its own document: schemathesis makes up requests, right ones and wrong ones,
//! and compares every answer with what the document says.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use crate::gateway::Gateway;

const ADMIN_TOKEN: &str = "an-admin-token-of-the-tests";

/// What is looked at in every answer; the first two are ours.
const CHECKS: &str = "no_fault,EveryEndpointWorks,status_code_conformance,\
                      content_type_conformance,response_headers_conformance,\
                      response_schema_conformance,unsupported_method,allow_header_conformance";

#[tokio::test]
async fn every_answer_is_as_the_document_says() {
    let folder = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", folder.path().join("accounts.db").display());
    let arguments = ["--store", &store, "--admin-token", ADMIN_TOKEN];
    let gateway = Gateway::start_with_log(&[&arguments[..], &["--log", "error"]].concat()).await;
    let (url, scratch) = (gateway.url.clone(), folder.path().to_owned());
    let output = tokio::task::spawn_blocking(move || fuzz(&url, &scratch));
    let output = output.await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", gateway.log());
    // What has tested nothing would be a success, too.
    assert!(said.contains(" passed"), "{said}");
}

fn fuzz(url: &str, scratch: &Path) -> Output {
    Command::new(environment().join("bin").join("schemathesis"))
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

/// Where schemathesis is. Made once, and again when the list of what is in it has changed.
fn environment() -> PathBuf {
    let list = contract().join("requirements.txt");
    let wanted = fs::read_to_string(&list).unwrap();
    let environment = Path::new(env!("CARGO_TARGET_TMPDIR")).join("contract");
    let made = environment.join("made-of.txt");
    if fs::read_to_string(&made).is_ok_and(|made| made == wanted) {
        return environment;
    }
    let make = ["-m", "venv", "--clear"].map(OsStr::new);
    run(
        Path::new("python3"),
        &[&make[..], &[environment.as_os_str()]].concat(),
    );
    let install = ["-m", "pip", "install", "--quiet", "--requirement"].map(OsStr::new);
    let python = environment.join("bin").join("python");
    run(&python, &[&install[..], &[list.as_os_str()]].concat());
    fs::write(&made, wanted).unwrap();
    environment
}

fn run(program: &Path, arguments: &[&OsStr]) {
    let output = Command::new(program).args(arguments).output();
    let output = output.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(output.status.success(), "{output:?}");
}
