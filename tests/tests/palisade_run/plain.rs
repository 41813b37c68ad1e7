//! A run in which nothing fails.

use std::{
    io::{Read, Write},
    os::unix::process::ExitStatusExt,
    process::Stdio,
    time::{Duration, Instant},
};

use rustix::process::{Signal, kill_process};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::Command,
};

use crate::support::{Marked, Place, output, palisade_run, stderr, stdout};

/// Catches: an exit code that a script or cron would misread.
#[tokio::test]
async fn the_exit_code_is_that_of_the_command_or_says_why_there_was_none() {
    let place = Place::new();
    let url = place.url();
    let absent = format!("sqlite:{}", place.file("none/leases.db").display());
    let plain = place.file("no-program");
    std::fs::write(&plain, "").unwrap();
    let plain = plain.to_str().unwrap();
    for (lock, command, code) in [
        (url.as_str(), &["sh", "-c", "exit 0"][..], 0),
        (&url, &["sh", "-c", "exit 42"], 42),
        (&url, &["sh", "-c", "kill -KILL $$"], 137),
        (&url, &["sh", "-c", "kill -TERM $$"], 143),
        (&url, &["a-program-that-is-not-there"], 127),
        (&url, &[plain], 126),
        (&absent, &["true"], 69),
        ("redis://127.0.0.1:1", &["true"], 69),
        ("memory:", &["true"], 2),
        ("nonsense:", &["true"], 2),
    ] {
        let head = ["--resource", "r", "--lock", lock, "--"];
        let ended = output(&[&head[..], command].concat()).await;
        let said = stderr(&ended);
        assert_eq!(ended.status.code(), Some(code), "{command:?} {said}");
        let is_ours = matches!(code, 2 | 69 | 126 | 127);
        assert_eq!(said.is_empty(), !is_ours, "{command:?} {said}");
        assert_eq!(stdout(&ended), "");
    }
    // No file is made for a run that cannot begin.
    let made = place.file("made.db");
    let file = format!("sqlite:{}", made.display());
    for wrong in [
        "run --resource r -- true".to_owned(),
        format!("run --lock {file} -- true"),
        format!("run --resource r --lock {file}"),
        format!("run --resource r --lock {file} --once s -- true"),
        format!("run --resource r --lock {file} --ttl 3s --grace 2s -- true"),
        format!("run --resource r --store {file} --every never -- true"),
        format!("run --resource r --lock {file} --signing-keys /none -- true"),
    ] {
        let arguments: Vec<_> = wrong.split(' ').skip(1).collect();
        let ended = output(&arguments).await;
        assert_eq!(ended.status.code(), Some(2), "{wrong} {}", stderr(&ended));
    }
    assert!(!made.exists());
}

/// Catches: input or output that does not reach the command, or a process of ours that keeps its
/// neighbours in a pipe waiting.
#[tokio::test]
async fn input_and_output_are_those_of_the_command() {
    let place = Place::new();
    let url = place.url();
    let mut run = palisade_run(&["--resource", "r", "--lock", &url, "--", "sh", "-c", {
        "read line; echo got $line; exec >&-; read more; echo $more >&2; exec <&-; sleep 60"
    }]);
    let run = run.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut run = run.stderr(Stdio::piped()).spawn().unwrap();
    let mut input = run.stdin.take().unwrap();
    input.write_all(b"one\n").await.unwrap();
    // The output ends here, although the command runs on, because no other process has it open.
    let mut out = String::new();
    run.stdout
        .take()
        .unwrap()
        .read_to_string(&mut out)
        .await
        .unwrap();
    assert_eq!(out, "got one\n");
    input.write_all(b"two\n").await.unwrap();
    let mut errors = [0; 4];
    run.stderr
        .as_mut()
        .unwrap()
        .read_exact(&mut errors)
        .await
        .unwrap();
    assert_eq!(&errors, b"two\n");
    // The command has closed its input, and no other process reads it.
    e2e::observer::until("writing fails", async || {
        rustix::io::write(&input, b"x").is_err()
    })
    .await;
}

/// Catches: a command that does not begin, because no reader takes our line about its lease.
#[tokio::test]
async fn a_reader_that_does_not_read_keeps_no_command_waiting() {
    let place = Place::new();
    let url = place.url();
    let head = ["--resource", "r", "--lock", &url, "--verbose", "--"];
    let (mut reader, mut writer) = std::io::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    let mut filled = 0;
    while let Ok(written) = writer.write(&[b'.'; 4096]) {
        filled += written;
    }
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let mut run = {
        let mut run = palisade_run(&[&head[..], &["echo", "begun"]].concat());
        run.stdout(Stdio::piped()).stderr(writer).spawn().unwrap()
    };
    let mut out = [0; 6];
    let begun = run.stdout.as_mut().unwrap().read_exact(&mut out);
    let begun = tokio::time::timeout(Duration::from_secs(30), begun).await;
    begun.expect("the command does not begin").unwrap();
    assert_eq!(&out, b"begun\n");
    // The lease is released, too.
    let next = [
        "--resource",
        "r",
        "--lock",
        &url,
        "--wait",
        "30s",
        "--",
        "true",
    ];
    assert_eq!(output(&next).await.status.code(), Some(0));
    let said = tokio::task::spawn_blocking(move || {
        reader.read_exact(&mut vec![0; filled]).unwrap();
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        said
    });
    assert_eq!(run.wait().await.unwrap().code(), Some(0));
    let said = said.await.unwrap();
    let lines: Vec<_> = said.lines().collect();
    let [acquired, exited] = lines[..] else {
        panic!("{said}");
    };
    assert!(acquired.contains("is acquired after"), "{said}");
    assert!(exited.contains("exit code 0"), "{said}");
}

/// Catches: a command that cannot present its token, or a secret where others can see it.
#[tokio::test]
async fn the_command_knows_its_token_and_no_argument_has_the_holder() {
    let place = Place::new();
    let url = place.url();
    let script = "cat /proc/*/cmdline | tr '\\0\\n' '  '; echo; echo environment; env";
    let keys = place.file("keys");
    let key = Command::new(e2e::warden::workspace_binary("palisade").unwrap())
        .arg("signing-key")
        .output();
    std::fs::write(&keys, key.await.unwrap().stdout).unwrap();
    let ended = output(&[
        "--resource",
        "account:42",
        "--store",
        &url,
        "--issuer",
        "files",
        "--verbose",
        "--signing-keys",
        keys.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        script,
    ])
    .await;
    assert!(ended.status.success(), "{}", stderr(&ended));
    let out = stdout(&ended);
    let (arguments, environment) = out.rsplit_once("\nenvironment\n").unwrap();
    let value = |name: &str| {
        let line = environment.lines().find_map(|line| line.strip_prefix(name));
        line.unwrap().strip_prefix('=').unwrap()
    };
    let (token, holder) = (value("FENCING_TOKEN"), value("FENCING_HOLDER"));
    assert_eq!(value("FENCING_RESOURCE"), "account:42");
    assert_eq!(value("FENCING_ISSUER"), "files");
    let header = value("FENCING_HEADER")
        .strip_prefix("Fencing-Token: ")
        .unwrap();
    let parsed = fenced_http::FencingHeader::parse(header.as_bytes()).unwrap();
    let sequencer = parsed.to_sequencer().unwrap();
    assert_eq!(sequencer.token().to_string(), token);
    assert_eq!(sequencer.holder().digest(), holder);
    assert!(header.contains(";sig="), "{header}");
    for secret in [holder.to_owned(), sequencer.holder().expose()] {
        assert!(!arguments.contains(&secret), "in an argument");
        assert!(!stderr(&ended).contains(&secret), "in our output");
    }
}

/// Catches: a second command while the first one runs, a mail from cron for each run that finds the
/// lease held, or a wait that ends without a reason.
#[tokio::test]
async fn one_command_runs_at_a_time() {
    let place = Place::new();
    let url = place.url();
    let head = ["--resource", "r", "--lock", &url];
    let sleeping = [&head[..], &["--", "sleep", "60"]].concat();
    let mut first = Marked::spawn(palisade_run(&sleeping));
    first.until_it_has(1).await;

    let quiet = output(&[&head[..], &["--", "echo", "ran"]].concat()).await;
    assert_eq!(quiet.status.code(), Some(75));
    assert_eq!(
        (stdout(&quiet), stderr(&quiet)),
        (String::new(), String::new())
    );
    let loud = output(&[&head[..], &["--verbose", "--", "echo", "ran"]].concat()).await;
    assert!(
        stderr(&loud).contains("another holder has \"r\""),
        "{}",
        stderr(&loud)
    );
    let json = output(&[&head[..], &["--json", "--wait", "100ms", "--", "echo"]].concat()).await;
    assert_eq!(json.status.code(), Some(75));
    let event: serde_json::Value = serde_json::from_str(stderr(&json).trim()).unwrap();
    assert_eq!(event["event"], "held");

    let mut waits = palisade_run(&[&head[..], &["--wait", "60s", "--", "echo", "ran"]].concat());
    let waits = waits.stdout(Stdio::piped()).spawn().unwrap();
    kill_process(first.guardian(), Signal::TERM).unwrap();
    assert_eq!(first.ended().await.code(), Some(143));
    let waited = waits.wait_with_output().await.unwrap();
    assert_eq!(stdout(&waited), "ran\n");
}

/// Catches: a wait that cannot be ended, or that keeps its place in the queue afterwards.
#[tokio::test]
async fn a_signal_ends_the_wait_and_leaves_nothing_behind() {
    let place = Place::new();
    let url = place.url();
    let head = ["--resource", "r", "--lock", &url];
    let first = Marked::spawn(palisade_run(&[&head[..], &["--", "sleep", "60"]].concat()));
    first.until_it_has(1).await;
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let waits = [&head[..], &["--wait", "60s", "--", "true"]].concat();
        let mut waits = Marked::spawn(palisade_run(&waits));
        let locks = palisade::connect(&*url).await.unwrap();
        e2e::observer::until("it waits", async || {
            let seen = locks.inspect("r").await.unwrap();
            seen.waiters > Some(0)
        })
        .await;
        kill_process(waits.guardian(), signal).unwrap();
        assert_eq!(waits.ended().await.code(), Some(code));
        let seen = locks.inspect("r").await.unwrap();
        assert_eq!(
            seen.waiters,
            Some(0),
            "its place in the queue is left behind"
        );
    }
}

/// Catches: a wait that is ended by a signal that `nohup`, or `&` in a script, has made ignored.
#[tokio::test]
async fn a_signal_that_is_ignored_ends_no_wait() {
    let place = Place::new();
    let url = place.url();
    let locks = palisade::connect(&*url).await.unwrap();
    let other = locks.acquire("r").await.unwrap();
    let mut waits = Command::new("perl");
    waits.args(["-e", "$SIG{$_} = 'IGNORE' for qw(HUP INT); exec @ARGV"]);
    waits.arg(e2e::warden::workspace_binary("palisade").unwrap());
    waits.args(["run", "--resource", "r", "--lock", &url, "--wait", "60s"]);
    waits.args(["--", "sh", "-c", "exit 3"]);
    let mut waits = Marked::spawn(waits);
    e2e::observer::until("it waits", async || {
        locks.inspect("r").await.unwrap().waiters > Some(0)
    })
    .await;
    for signal in [Signal::HUP, Signal::INT] {
        kill_process(waits.guardian(), signal).unwrap();
    }
    other.release().await.unwrap();
    assert_eq!(waits.ended().await.code(), Some(3));
}

/// Catches: a panic instead of an error.
#[tokio::test]
async fn a_limit_of_few_open_files_is_an_error() {
    let place = Place::new();
    let palisade = e2e::warden::workspace_binary("palisade").unwrap();
    let mut limited = Command::new("sh");
    limited.args(["-c", "ulimit -n 6; exec \"$0\" \"$@\""]);
    limited.arg(palisade);
    limited.args([
        "run",
        "--resource",
        "r",
        "--lock",
        &place.url(),
        "--",
        "true",
    ]);
    let limited = limited.output().await.unwrap();
    let said = stderr(&limited);
    assert_eq!(limited.status.code(), Some(125), "{said}");
    assert!(said.contains("6 open files are too few"), "{said}");
}

/// Catches: processes that hold up the next command, or that go on without a lease.
#[tokio::test]
async fn processes_that_outlive_the_command_are_ended() {
    let place = Place::new();
    let url = place.url();
    let started = Instant::now();
    let mut run = Marked::spawn(palisade_run(&[
        "--resource",
        "r",
        "--lock",
        &url,
        "--",
        "sh",
        "-c",
        "sleep 60 & sleep 61 & exit 7",
    ]));
    assert_eq!(run.ended().await.code(), Some(7));
    assert_eq!(run.commands().len(), 0);
    assert!(started.elapsed() < Duration::from_secs(30));
    let next = output(&["--resource", "r", "--lock", &url, "--", "true"]).await;
    assert!(next.status.success());
}

/// Catches: a signal that does not reach the command, or a signal that the caller ignores and the
/// command does not.
#[tokio::test]
async fn signals_reach_the_command() {
    let place = Place::new();
    let url = place.url();
    for name in ["INT", "TERM", "HUP", "QUIT", "USR1", "USR2", "ALRM"] {
        let script = format!("trap 'echo got {name}; exit 9' {name}; echo ready; sleep 60 & wait");
        let mut run = palisade_run(&["--resource", "r", "--lock", &url, "--", "sh", "-c", &script]);
        let mut run = Marked::spawn({
            run.stdout(Stdio::piped());
            run
        });
        let mut out = run.child.stdout.take().unwrap();
        let mut ready = [0; 6];
        out.read_exact(&mut ready).await.unwrap();
        let raw = match name {
            "INT" => Signal::INT,
            "TERM" => Signal::TERM,
            "HUP" => Signal::HUP,
            "QUIT" => Signal::QUIT,
            "USR1" => Signal::USR1,
            "USR2" => Signal::USR2,
            _ => Signal::ALARM,
        };
        kill_process(run.guardian(), raw).unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).await.unwrap();
        assert_eq!(rest, format!("got {name}\n"));
        assert_eq!(run.ended().await.code(), Some(9));
    }
    let ignoring = output(&[
        "--resource",
        "r",
        "--lock",
        &url,
        "--",
        "nohup",
        "sh",
        "-c",
        "kill -HUP $$; grep SigIgn /proc/$$/status",
    ])
    .await;
    assert!(ignoring.status.success(), "{:?}", ignoring.status.signal());
}

/// Catches: a documented command that does not run, or a header that a service does not take.
#[tokio::test]
async fn curl_under_a_run_enters_by_its_header() {
    let place = Place::new();
    let url = place.url();
    let keys = place.file("keys");
    let palisade = e2e::warden::workspace_binary("palisade").unwrap();
    let key = Command::new(&palisade).arg("signing-key").output().await;
    std::fs::write(&keys, key.unwrap().stdout).unwrap();
    let keys = keys.to_str().unwrap();
    let mut bank = e2e::process::Process::spawn(
        "palisade-demo",
        [
            "serve",
            "--lock",
            &url,
            "--store",
            &url,
            "--signing-keys",
            keys,
            "--addr",
            "127.0.0.1:0",
        ],
    );
    let address = loop {
        let line = bank.line().await.unwrap();
        let words = line.split_whitespace();
        if let Some(url) = words.into_iter().find(|word| word.starts_with("http://")) {
            break url.trim_end_matches(['/', ',', '.']).to_owned();
        }
    };
    let script = e2e::documented::script_for_run("curl.sh");
    let readme = std::fs::read_to_string(e2e::project::root().join("README.md"));
    assert!(readme.unwrap().contains(&script), "the README has another");
    let folder = palisade.parent().unwrap().display().to_string();
    let ran = Command::new("sh")
        .args(["-ec", &script])
        .env(
            "PATH",
            format!("{folder}:{}", std::env::var("PATH").unwrap()),
        )
        .envs([("STORE", url.as_str()), ("KEYS", keys), ("BANK", &address)])
        .output()
        .await
        .unwrap();
    let said = format!("{} {}", stdout(&ran), stderr(&ran));
    assert!(ran.status.success() && said.contains("150"), "{said}");
}
