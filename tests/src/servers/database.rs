use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use sqlx::{ConnectOptions, Connection};

use super::start;
use crate::warden::{ServerKind, Warden};

/// A kind of server with databases: the tests of a process share one server, and each gets a
/// database of its own.
pub trait Databases: sqlx::Database {
    /// The same server, but with this database.
    fn database(options: &Options<Self>, name: &str) -> Options<Self>;

    /// The statement that drops a database.
    fn drop_statement(name: &str) -> String;

    /// Executes a statement on a connection of its own.
    fn execute(
        options: &Options<Self>,
        sql: String,
    ) -> impl Future<Output = Result<(), sqlx::Error>> + Send;
}

type Options<DB> = <<DB as sqlx::Database>::Connection as Connection>::Options;

/// An empty database for one test. Close your connections before it is dropped.
#[derive(Debug)]
pub struct TestDatabase<DB: Databases> {
    url: String,
    /// Set if the server is not ours: then the database has to be dropped explicitly.
    borrowed: Option<Borrowed<DB>>,
}

impl<DB: Databases> TestDatabase<DB> {
    /// The URL to connect to.
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl<DB: Databases> Drop for TestDatabase<DB> {
    fn drop(&mut self) {
        if let Some(borrowed) = self.borrowed.take() {
            borrowed.give_back();
        }
    }
}

#[derive(Debug)]
pub(super) struct Server<DB: Databases> {
    options: Options<DB>,
    /// Never dropped, like all statics: its warden notices when the process ends.
    own: Option<Warden>,
}

impl<DB: Databases> Server<DB> {
    /// Starts one, unless the variable names a server to use instead.
    pub(super) async fn new(kind: ServerKind, url_variable: &str) -> Self {
        let (url, own) = match env::var(url_variable) {
            Ok(url) => (url, None),
            Err(_) => {
                let warden = start(kind, Vec::new()).await;
                (warden.running().url.clone(), Some(warden))
            }
        };
        let options = url
            .parse()
            .unwrap_or_else(|error| panic!("the URL of the {} server: {error}", DB::NAME));
        Self { options, own }
    }

    pub(super) async fn create_database(&self) -> TestDatabase<DB> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("e2e_{}_{number}", std::process::id());
        DB::execute(&self.options, format!("CREATE DATABASE {name}"))
            .await
            .unwrap_or_else(|error| panic!("cannot create the database {name}: {error}"));
        TestDatabase {
            url: DB::database(&self.options, &name)
                .to_url_lossy()
                .to_string(),
            borrowed: self.own.is_none().then(|| Borrowed {
                options: self.options.clone(),
                name,
            }),
        }
    }
}

/// A database on a server that goes on running after the tests.
#[derive(Debug)]
struct Borrowed<DB: Databases> {
    options: Options<DB>,
    name: String,
}

impl<DB: Databases> Borrowed<DB> {
    /// On a thread of its own: a `Drop` runs inside the test's runtime and must not block on it.
    fn give_back(self) {
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            runtime.block_on(DB::execute(&self.options, DB::drop_statement(&self.name)))
        });
        match dropping.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("a test database is left behind: {error}"),
            Err(_) => eprintln!("a test database is left behind: the cleaning thread panicked"),
        }
    }
}
