-- What each Idempotency-Key was first used for: digests that nobody can compute without the secret
-- of the gateways, and when it was used last, in seconds since 1970.
CREATE TABLE IF NOT EXISTS gateway_idempotency_keys (
    id      TEXT    PRIMARY KEY NOT NULL,
    request TEXT    NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS gateway_idempotency_keys_used_at
    ON gateway_idempotency_keys (used_at);
