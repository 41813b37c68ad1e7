//! The libraries, and how their programs are built.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::{Deserialize, Serialize};

use crate::error::BoxError;

/// A library on one of its servers.
pub(super) struct Library {
    /// The name by which its program knows the library.
    pub(super) name: &'static str,
    pub(super) service: Service,
    pub(super) language: Language,
    /// The file that has its version, and the text before the version in that file.
    pinned: (&'static str, &'static str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Service {
    Redis,
    Postgres,
    #[serde(rename = "etcd")]
    Etcd,
    ZooKeeper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Language {
    Rust,
    Go,
    Java,
    Python,
    #[serde(rename = "Node.js")]
    Node,
}

const OURS: (&str, &str) = ("Cargo.lock", "name = \"palisade-lock\"\nversion = \"");
const RSLOCK: (&str, &str) = ("Cargo.lock", "name = \"rslock\"\nversion = \"");
const SQLX: (&str, &str) = ("Cargo.lock", "name = \"sqlx\"\nversion = \"");
const REDIS_PY: (&str, &str) = ("bench/peers/python/requirements.txt", "redis==");
const NODE_REDLOCK: (&str, &str) = ("bench/peers/node/package.json", "\"redlock\": \"");
const REDISLOCK: (&str, &str) = ("bench/peers/go/go.mod", "bsm/redislock v");
const REDSYNC: (&str, &str) = ("bench/peers/go/go.mod", "redsync/v4 v");
const ETCD_GO: (&str, &str) = ("bench/peers/go/go.mod", "etcd/client/v3 v");
const REDISSON: (&str, &str) = (
    "bench/peers/java/pom.xml",
    ">redisson</artifactId> <version>",
);
const CURATOR: (&str, &str) = (
    "bench/peers/java/pom.xml",
    ">curator-recipes</artifactId> <version>",
);

/// The libraries in the order of the tables: ours first.
pub(super) const LIBRARIES: &[Library] = &[
    of("palisade", Service::Redis, Language::Rust, OURS),
    of("rslock", Service::Redis, Language::Rust, RSLOCK),
    of("redislock", Service::Redis, Language::Go, REDISLOCK),
    of("redsync", Service::Redis, Language::Go, REDSYNC),
    of("redisson", Service::Redis, Language::Java, REDISSON),
    of("redisson-fair", Service::Redis, Language::Java, REDISSON),
    of("redisson-fenced", Service::Redis, Language::Java, REDISSON),
    of("redis-py", Service::Redis, Language::Python, REDIS_PY),
    of("node-redlock", Service::Redis, Language::Node, NODE_REDLOCK),
    of("palisade", Service::Postgres, Language::Rust, OURS),
    of("lease-table", Service::Postgres, Language::Rust, SQLX),
    of("advisory-lock", Service::Postgres, Language::Rust, SQLX),
    of("for-update", Service::Postgres, Language::Rust, SQLX),
    of("palisade", Service::Etcd, Language::Rust, OURS),
    of("etcd-go", Service::Etcd, Language::Go, ETCD_GO),
    of("palisade", Service::ZooKeeper, Language::Rust, OURS),
    of("curator", Service::ZooKeeper, Language::Java, CURATOR),
];

const fn of(
    name: &'static str,
    service: Service,
    language: Language,
    pinned: (&'static str, &'static str),
) -> Library {
    Library {
        name,
        service,
        language,
        pinned,
    }
}

/// The libraries with these names, or all if no names are given.
pub(super) fn choose(names: &[String]) -> Result<Vec<&'static Library>, BoxError> {
    let known = |name: &String| LIBRARIES.iter().any(|library| library.name == name);
    if let Some(name) = names.iter().find(|name| !known(name)) {
        let known: Vec<_> = LIBRARIES.iter().map(|library| library.name).collect();
        return Err(format!(
            "no library is called {name:?}; there are {}",
            known.join(", ")
        )
        .into());
    }
    let wanted =
        |library: &&Library| names.is_empty() || names.iter().any(|name| name == library.name);
    Ok(LIBRARIES.iter().filter(wanted).collect())
}

impl Library {
    /// The version in the file that pins it.
    pub(super) fn version(&self) -> Result<String, BoxError> {
        let (file, before) = self.pinned;
        let text = fs::read_to_string(project().join(file))?;
        // XML and TOML differ in how they break lines.
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let text = words(&text);
        let version = text.split(&words(before)).nth(1);
        let version = version.and_then(|rest| rest.split(['"', '<', ' ']).next());
        let version = version.ok_or_else(|| format!("{file} does not name {}", self.name))?;
        Ok(version.to_owned())
    }
}

/// The languages that this machine can build, with their programs.
pub(super) struct Toolchains {
    built: Vec<(Language, PathBuf)>,
    pub(super) missing: Vec<(Language, String)>,
}

impl Toolchains {
    /// Builds the programs of the languages that are wanted.
    pub(super) fn prepare(wanted: &[&Library]) -> Self {
        let mut prepared = Self {
            built: Vec::new(),
            missing: Vec::new(),
        };
        let (source, target) = (
            project().join("bench/peers"),
            project().join("target/peers"),
        );
        for language in [
            Language::Rust,
            Language::Go,
            Language::Java,
            Language::Python,
            Language::Node,
        ] {
            if wanted.iter().all(|library| library.language != language) {
                continue;
            }
            eprintln!("[build] {language:?}");
            match language.build(&source, &target) {
                Ok(program) => prepared.built.push((language, program)),
                Err(error) => {
                    eprintln!("{language:?} is left out: {error}");
                    prepared.missing.push((language, error.to_string()));
                }
            }
        }
        prepared
    }

    pub(super) fn has(&self, library: &Library) -> bool {
        self.built
            .iter()
            .any(|(built, _)| *built == library.language)
    }

    /// Starts the program of a library.
    pub(super) fn command(&self, library: &Library) -> Command {
        let built = self
            .built
            .iter()
            .find(|(built, _)| *built == library.language);
        let (language, program) = built.expect("only libraries that are built are run");
        let mut command = match language {
            Language::Rust | Language::Go => Command::new(program),
            Language::Java => {
                let mut java = Command::new("java");
                java.arg("-cp").arg(program).arg("Peer");
                java
            }
            Language::Python => {
                let mut python = Command::new(program.join("bin/python"));
                python.arg(project().join("bench/peers/python/peer.py"));
                python
            }
            Language::Node => {
                let mut node = Command::new("node");
                node.arg(program.join("peer.js"));
                node
            }
        };
        command.arg(library.name);
        command
    }
}

impl Language {
    /// Builds the program of a language below the target, and returns its path.
    fn build(self, source: &Path, target: &Path) -> Result<PathBuf, BoxError> {
        fs::create_dir_all(target)?;
        match self {
            Self::Rust => rust_program(),
            Self::Go => {
                let program = target.join("peer-go");
                let go = Command::new("go");
                run(
                    go,
                    &["build", "-o", &text(&program), "."],
                    &source.join("go"),
                )?;
                Ok(program)
            }
            Self::Java => {
                let folder = copied(&source.join("java"), &target.join("java"))?;
                let goals = ["-q", "-B", "package", "dependency:copy-dependencies"];
                run(Command::new("mvn"), &goals, &folder)?;
                let target = text(&folder.join("target"));
                Ok(format!("{target}/peer-1.jar:{target}/dependency/*").into())
            }
            Self::Python => {
                let folder = target.join("python");
                let python = Command::new("python3");
                run(python, &["-m", "venv", &text(&folder)], source)?;
                let pip = Command::new(folder.join("bin/pip"));
                let arguments = ["install", "-q", "-r", "requirements.txt"];
                run(pip, &arguments, &source.join("python"))?;
                Ok(folder)
            }
            Self::Node => {
                let folder = copied(&source.join("node"), &target.join("node"))?;
                run(Command::new("npm"), &["install", "--silent"], &folder)?;
                Ok(folder)
            }
        }
    }
}

/// The program of the libraries in Rust, which is built with this one.
pub(crate) fn rust_program() -> Result<PathBuf, BoxError> {
    Ok(env::current_exe()?.with_file_name("peer"))
}

/// The folder of the project.
pub(super) fn project() -> PathBuf {
    let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.parent().unwrap_or(bench).to_owned()
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// Copies a folder, because the language's tool writes beside the sources.
fn copied(from: &Path, to: &Path) -> io::Result<PathBuf> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copied(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(to.to_owned())
}

/// Runs a tool to its end.
fn run(mut tool: Command, arguments: &[&str], folder: &Path) -> Result<(), BoxError> {
    let tool = tool
        .args(arguments)
        .current_dir(folder)
        .stdout(Stdio::null());
    let name = tool.get_program().display().to_string();
    let status = tool
        .status()
        .map_err(|error| format!("{name} cannot be started: {error}"))?;
    if status.success() {
        return Ok(());
    }
    Err(format!("{name} {}: {status}", arguments.join(" ")).into())
}
