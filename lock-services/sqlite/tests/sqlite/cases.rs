//! The cases of all lock services in databases.

use serde_json::{Value, json};
use sqlx::{Sqlite, SqlitePool};

use crate::{
    in_a_database::{Database, database_cases, statements},
    world::Folder,
};

impl Database for Folder {
    type Db = Sqlite;

    const WAITER: &'static str = "fenced_waiter";

    const DEPOSITOR: &'static str = "fenced_deposit_sqlite.py";

    const FENCE: [&'static str; 2] = ["        check(file, me, token)\n", ""];

    async fn fresh() -> Self {
        Self::new()
    }

    fn url(&self) -> String {
        Self::url(self)
    }

    fn plain(&self) -> String {
        self.file().to_str().unwrap().to_owned()
    }

    async fn pool(&self) -> SqlitePool {
        Self::pool(self).await
    }

    statements!();

    fn is_refusal(said: &Value) -> bool {
        *said == json!({ "refused": "a newer holder has claimed" })
    }
}

database_cases!(Folder);
