use super::KeyTable;

/// Remembers the first request of the key, and reads it.
const FIRST_REQUEST: &str = "INSERT INTO gateway_idempotency_keys (id, request, used_at) \
                             VALUES ($1, $2, $3) \
                             ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at \
                             RETURNING request";

const FORGET_REQUESTS: &str = "DELETE FROM gateway_idempotency_keys WHERE used_at < $1";

/// This is a macro, because the bounds of generic code would be longer than the code itself.
macro_rules! key_table {
    ($database:ty, $create:expr) => {
        impl KeyTable for $database {
            const CREATE: &'static str = $create;

            async fn first_request(
                connection: &mut Self::Connection,
                key: &str,
                request: &str,
                now: i64,
            ) -> Result<String, sqlx::Error> {
                sqlx::query_scalar(FIRST_REQUEST)
                    .bind(key)
                    .bind(request)
                    .bind(now)
                    .fetch_one(connection)
                    .await
            }

            async fn forget_requests(
                connection: &mut Self::Connection,
                before: i64,
            ) -> Result<(), sqlx::Error> {
                let forget = sqlx::query(FORGET_REQUESTS).bind(before);
                forget.execute(connection).await.map(drop)
            }
        }
    };
}

#[cfg(feature = "postgres")]
key_table!(sqlx::Postgres, include_str!("postgres.sql"));
#[cfg(feature = "sqlite")]
key_table!(sqlx::Sqlite, include_str!("sqlite.sql"));
