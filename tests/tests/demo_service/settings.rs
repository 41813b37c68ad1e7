//! Flags go before the environment, that before the file, that before the defaults.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use e2e::{process::Process, warden::workspace_binary};
use tempfile::TempDir;

struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join("palisade.toml");
        fs::write(&path, text).unwrap();
        path
    }
}

fn serve(config: &Path, environment: &[(&str, &str)], arguments: &[&str]) -> Output {
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    let inherited = std::env::vars().filter(|(name, _)| name.starts_with("PALISADE_"));
    for (name, _) in inherited {
        command.env_remove(name);
    }
    command.env_remove("RUST_LOG");
    command.envs(environment.iter().copied());
    command.arg("serve").arg("--config").arg(config);
    command.args(arguments).output().unwrap()
}

/// What `--print-config` says, by key, without the places.
#[track_caller]
fn in_force(
    config: &Path,
    environment: &[(&str, &str)],
    arguments: &[&str],
) -> BTreeMap<String, String> {
    let output = serve(
        config,
        environment,
        &[&["--print-config"], arguments].concat(),
    );
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter_map(|line| line.split_once(" = "));
    lines
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

#[test]
fn a_flag_goes_before_the_environment_that_before_the_file_that_before_the_default() {
    let folder = Folder::new();
    let file = folder.file("max_waiting = 3\nstore = \"sqlite:of-the-file.db\"\n");
    let environment = [("PALISADE_MAX_WAITING", "2")];
    let flag = ["--max-waiting", "1"];
    for (environment, arguments, wanted) in [
        (&environment[..], &flag[..], "1 # command line"),
        (&environment, &[], "2 # environment, PALISADE_MAX_WAITING"),
        (&[], &flag, "1 # command line"),
        (&[], &[], "3 # file"),
    ] {
        let settings = in_force(&file, environment, arguments);
        assert_eq!(settings["max_waiting"], wanted);
        assert_eq!(settings["store"], "\"sqlite:of-the-file.db\" # file");
    }
    let empty = folder.file("");
    let settings = in_force(&empty, &[], &["--store", "sqlite:of-the-flag.db"]);
    assert_eq!(settings["max_waiting"], "500 # default");
    assert_eq!(
        settings["store"],
        "\"sqlite:of-the-flag.db\" # command line"
    );
    // The file can be named in the environment, too.
    let mut command = Command::new(workspace_binary("palisade").unwrap());
    let file = folder.file("store = \"sqlite:x.db\"\nunsigned = true");
    let command = command.env("PALISADE_CONFIG", file);
    let output = command.args(["serve", "--print-config"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("unsigned = true # file"), "{said}");
}

/// Every setting can stand in the file, and what is printed can be read again.
#[test]
fn what_is_printed_is_a_file_of_settings() {
    let folder = Folder::new();
    let file = folder.file("store = 'sqlite:accounts.db'");
    let output = serve(
        &file,
        &[],
        &["--print-config", "--addr", "127.0.0.1:0", "--unsigned"],
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    let again = folder.file(&printed);
    let settings = in_force(&again, &[], &[]);
    for key in [
        "lock",
        "store",
        "addr",
        "audience",
        "unsigned",
        "request_timeout",
        "log_format",
    ] {
        assert!(settings[key].ends_with(" # file"), "{key}: {settings:?}");
    }
    assert_eq!(settings["unsigned"], "true # file");
    // Lines end as on other systems, and an editor left its mark.
    let foreign = folder.file(format!("\u{feff}{}", printed.replace('\n', "\r\n")));
    assert_eq!(in_force(&foreign, &[], &[]), settings);
}

#[test]
fn no_secret_is_printed() {
    let folder = Folder::new();
    let file = folder.file(
        "admin_token = \"hunter2hunter2hunter2\"\nlock = \"redis://:hunter2@127.0.0.1:6379\"\n\
         store = \"postgres://me:hunter2@db.example/app\"\n",
    );
    let output = serve(&file, &[], &["--print-config"]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(!said.contains("hunter2"), "{said}");
    assert!(
        said.contains("# admin_token is set, and not shown # file"),
        "{said}"
    );
    assert!(
        said.contains("store = \"postgres://db.example/app\" # file"),
        "{said}"
    );
}

#[test]
fn what_is_wrong_with_the_file_is_told_in_one_line_with_its_place() {
    let folder = Folder::new();
    let store = "store = \"sqlite:accounts.db\"\n";
    for (text, said) in [
        (
            "patience = 3\n",
            "line 2: there is no setting \"patience\"; there are: lock, store",
        ),
        (
            "config = \"other.toml\"\n",
            "line 2: there is no setting \"config\"",
        ),
        (
            "max-waiting = 3\n",
            "line 2: there is no setting \"max-waiting\"",
        ),
        ("[lock]\nurl = 1\n", "line 2: \"lock\" is a text"),
        (
            "max_waiting = [\"hunter2\"]\n",
            "line 2: \"max_waiting\" is a text",
        ),
        (
            "\nmax_waiting = \"many\"\n",
            "line 3: invalid value 'many' for '--max-waiting",
        ),
        (
            "max_waiting = -1\n",
            "line 2: invalid value '-1' for '--max-waiting",
        ),
        (
            "addr = \"localhost\"\n",
            "line 2: invalid value 'localhost' for '--addr",
        ),
        (
            "unsigned = \"maybe\"\n",
            "line 2: invalid value 'maybe' for '--unsigned",
        ),
        ("log = \"a\"\nlog_format = 1\n", "line 3: "),
        ("admin_token = hunter2\n", "line 2: "),
        ("admin_token = \"hunter2\nunsigned = true\"\n", "line 2: "),
        ("admin_token = \"hunter2\"\n", "--admin-token: use 16"),
        ("unsigned = true\nunsigned = true\n", "line 3: "),
        (
            "unsigned = true\nsigning_keys = \"keys\"\n",
            "exclude each other",
        ),
    ] {
        let file = folder.file(format!("{store}{text}"));
        let output = serve(
            &file,
            &[],
            &["--addr=127.0.0.1:0"][..usize::from(!text.contains("addr"))],
        );
        let complaint = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}: {complaint}");
        let complaint: Vec<_> = complaint
            .lines()
            .filter(|line| !line.contains(" WARN "))
            .collect();
        let [complaint] = complaint[..] else {
            panic!("not one line: {complaint:?}")
        };
        assert!(complaint.contains(said), "{text}: {complaint}");
        assert!(!complaint.contains("hunter2"), "{text}: {complaint}");
    }
    for path in ["/nowhere/palisade.toml", "/"] {
        let output = serve(Path::new(path), &[], &[]);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
    let latin1 = folder.file(b"store = \"sqlite:\xe4.db\"");
    assert_eq!(serve(&latin1, &[], &[]).status.code(), Some(2));
}

#[test]
fn a_store_has_to_be_named_somewhere() {
    let folder = Folder::new();
    let output = serve(&folder.file("unsigned = true\n"), &[], &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("--store <URL>"), "{said}");
}

#[tokio::test]
async fn a_gateway_is_as_its_file_says() {
    let folder = Folder::new();
    let store = folder.0.path().join("accounts.db");
    let file = folder.file(format!(
        "addr = \"127.0.0.1:0\"\nstore = \"sqlite:{}\"\n",
        store.display()
    ));
    let config = file.to_str().unwrap();
    let mut gateway = Process::spawn("palisade", ["serve", "--config", config]);
    let line = gateway.line().await.unwrap();
    assert!(line.starts_with("listening on http://127.0.0.1:"), "{line}");
    assert!(!line.contains(":8080"), "{line}");
    assert!(store.exists());
}

#[test]
fn the_help_of_serve_tells_of_all_places() {
    let command = Command::new(workspace_binary("palisade").unwrap())
        .args(["serve", "--help"])
        .output();
    let help = String::from_utf8(command.unwrap().stdout).unwrap();
    for word in [
        "--config",
        "PALISADE_MAX_WAITING",
        "SIGHUP",
        "Exit codes:",
        "a file",
    ] {
        assert!(help.contains(word), "{word} is missing:\n{help}");
    }
}
