//! The picture of a schedule that breaks a promise.

use std::process::Command;

use e2e::warden::workspace_binary;

/// The first of some seeds whose schedule breaks the promise that no lease runs out, and its
/// recording.
fn recorded(folder: &tempfile::TempDir) -> (u64, std::path::PathBuf) {
    let file = folder.path().join("recording.json");
    for seed in 1..100_u64 {
        let mut replay = Command::new(workspace_binary("simulation").unwrap());
        replay.args(["--replay", &seed.to_string(), "--made-up-promise"]);
        let ended = replay.arg("--recording").arg(&file).output().unwrap();
        if ended.status.code() == Some(1) {
            return (seed, file);
        }
        assert_eq!(ended.status.code(), Some(0), "{ended:?}");
    }
    panic!("no lease has run out in 100 schedules");
}

/// Catches: a recording in another form than `draw` reads, or a picture without the broken promise.
#[test]
fn a_schedule_that_breaks_a_promise_is_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let (seed, file) = recorded(&folder);
    let mut draw = Command::new(workspace_binary("palisade-demo").unwrap());
    let drawn = draw.arg("draw").arg(&file).output().unwrap();
    assert!(drawn.status.success(), "{drawn:?}");
    let picture = String::from_utf8(drawn.stdout).unwrap();
    assert!(picture.starts_with("<svg"), "{picture}");
    let title = format!("Seed {seed} breaks made-up");
    for words in [&*title, "has run out", "client ", "expires"] {
        assert!(picture.contains(words), "{words}: {picture}");
    }
    assert!(!picture.contains("SIGSTOP"), "{picture}");
}
