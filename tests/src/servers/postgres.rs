use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
    thread,
};

use sqlx::{ConnectOptions, Connection, Executor, PgConnection, postgres::PgConnectOptions};
use tokio::sync::OnceCell;

use super::start;
use crate::warden::{ServerKind, Warden};

/// The variable that names a Postgres server to use instead of starting one.
///
/// Its role must be allowed to create databases.
pub const POSTGRES_URL_VARIABLE: &str = "PALISADE_TEST_POSTGRES_URL";

/// Makes an empty database on a real server that the tests of this process share.
///
/// # Panics
/// If there is no server: `postgres` is not installed, or the one that
/// `PALISADE_TEST_POSTGRES_URL` names does not let us in.
pub async fn postgres_database() -> PostgresDatabase {
    static SHARED: OnceCell<Server> = OnceCell::const_new();
    let server = SHARED.get_or_init(Server::new).await;
    server.create_database().await
}

/// An empty database of one test. Close your connections before it is dropped.
#[derive(Debug)]
pub struct PostgresDatabase {
    url: String,
    /// Set if the server is not ours: then the database has to be dropped by hand.
    borrowed: Option<Borrowed>,
}

impl PostgresDatabase {
    /// The URL to connect to.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        if let Some(borrowed) = self.borrowed.take() {
            borrowed.drop_database();
        }
    }
}

#[derive(Debug)]
struct Server {
    options: PgConnectOptions,
    /// Never dropped, like everything static: its warden notices when the process ends.
    own: Option<Warden>,
}

impl Server {
    async fn new() -> Self {
        let (url, own) = match env::var(POSTGRES_URL_VARIABLE) {
            Ok(url) => (url, None),
            Err(_) => {
                let warden = start(ServerKind::Postgres, Vec::new()).await;
                (warden.running().url.clone(), Some(warden))
            }
        };
        let options = url
            .parse()
            .unwrap_or_else(|error| panic!("the URL of the Postgres server is not one: {error}"));
        Self { options, own }
    }

    async fn create_database(&self) -> PostgresDatabase {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("e2e_{}_{number}", std::process::id());
        execute(&self.options, format!("CREATE DATABASE {name}"))
            .await
            .unwrap_or_else(|error| panic!("cannot create the database {name}: {error}"));
        let options = self.options.clone().database(&name);
        PostgresDatabase {
            url: options.to_url_lossy().to_string(),
            borrowed: self.own.is_none().then(|| Borrowed {
                options: self.options.clone(),
                name,
            }),
        }
    }
}

/// A database on a server that goes on when the tests are over.
#[derive(Debug)]
struct Borrowed {
    options: PgConnectOptions,
    name: String,
}

impl Borrowed {
    /// On a thread of its own: a `Drop` runs inside the test's runtime and must not block on it.
    fn drop_database(self) {
        let dropping = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
            runtime.block_on(execute(&self.options, sql))
        });
        match dropping.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => eprintln!("a test database is left behind: {error}"),
            Err(_) => eprintln!("a test database is left behind: the cleaning thread panicked"),
        }
    }
}

async fn execute(options: &PgConnectOptions, sql: String) -> Result<(), sqlx::Error> {
    let mut connection = PgConnection::connect_with(options).await?;
    // The text is ours: a fixed verb, and a name made of two numbers.
    connection.execute(sqlx::AssertSqlSafe(sql)).await?;
    connection.close().await
}
