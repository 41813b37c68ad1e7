use sqlx::MySql;

use super::KeyTable;

/// Keeps the request for which the key was used first.
const USE: &str = "INSERT INTO gateway_idempotency_keys (id, request, used_at) VALUES (?, ?, ?) \
                   ON DUPLICATE KEY UPDATE used_at = VALUES(used_at)";
const FIRST_REQUEST: &str = "SELECT request FROM gateway_idempotency_keys WHERE id = ?";
const FORGET_REQUESTS: &str = "DELETE FROM gateway_idempotency_keys WHERE used_at < ?";

impl KeyTable for MySql {
    const CREATE: &'static str = include_str!("mysql.sql");

    /// This takes two statements, because MySQL has no `RETURNING`. The second one finds the row,
    /// because the key was used a moment ago and is not forgotten.
    async fn first_request(
        connection: &mut Self::Connection,
        key: &str,
        request: &str,
        now: i64,
    ) -> Result<String, sqlx::Error> {
        let used = sqlx::query(USE).bind(key).bind(request).bind(now);
        used.execute(&mut *connection).await?;
        let first = sqlx::query_scalar(FIRST_REQUEST).bind(key);
        first.fetch_one(connection).await
    }

    async fn forget_requests(
        connection: &mut Self::Connection,
        before: i64,
    ) -> Result<(), sqlx::Error> {
        let forget = sqlx::query(FORGET_REQUESTS).bind(before);
        forget.execute(connection).await.map(drop)
    }
}
