//! A server that executes only the query.

use std::net::TcpListener as StdTcpListener;

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    routing::get,
};
use serde::{Deserialize, Serialize};
use sqlx::{Pool, Postgres, Sqlite};
use tokio::{
    net::TcpListener,
    runtime::{Builder, Runtime},
};

use crate::{figure::BoxError, pinning::on_server_core};

const READ: &str = "SELECT balance FROM demo_accounts WHERE id = $1";
const WRITE: &str = "UPDATE demo_accounts SET balance = $2 WHERE id = $1";

/// A server of axum on the core of the server, with as many threads as the gateway has.
pub(super) struct Bare {
    pub(super) address: String,
    runtime: Option<Runtime>,
}

impl Bare {
    pub(super) fn start(router: impl FnOnce() -> Router) -> Result<Self, BoxError> {
        on_server_core(|| {
            let mut runtime = Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build()?;
            let listener = StdTcpListener::bind("127.0.0.1:0")?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?.to_string();
            {
                let _entered = runtime.enter();
                let serving = axum::serve(TcpListener::from_std(listener)?, router());
                runtime.spawn(serving.into_future());
            }
            Ok(Self {
                address,
                runtime: Some(runtime),
            })
        })?
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        // A runtime must not wait for its threads inside another runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

#[derive(Deserialize, Serialize)]
struct Account {
    /// This field is only in answers.
    #[serde(default)]
    id: String,
    balance: i64,
}

fn failed(error: sqlx::Error) -> (StatusCode, String) {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string())
}

/// A macro, because generic code would have bounds longer than the code itself.
macro_rules! router {
    ($name:ident, $database:ty) => {
        pub(super) fn $name(pool: Pool<$database>) -> Router {
            type Accounts = State<Pool<$database>>;
            let read = async |State(pool): Accounts, Path(id): Path<String>| {
                let read = sqlx::query_scalar(READ).bind(&id).fetch_one(&pool).await;
                read.map(|balance| Json(Account { id, balance }))
                    .map_err(failed)
            };
            let write = async |State(pool): Accounts,
                               Path(id): Path<String>,
                               Json(Account { balance, .. }): Json<Account>| {
                let write = sqlx::query(WRITE)
                    .bind(&id)
                    .bind(balance)
                    .execute(&pool)
                    .await;
                write.map(|_| Json(Account { id, balance })).map_err(failed)
            };
            Router::new()
                .route("/healthz", get("ok\n"))
                .route("/v1/accounts/{id}", get(read).put(write))
                .with_state(pool)
        }
    };
}

router!(over_sqlite, Sqlite);
router!(over_postgres, Postgres);
