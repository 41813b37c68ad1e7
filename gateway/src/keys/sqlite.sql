-- The first request of each Idempotency-Key, and when the key was used last, in seconds since 1970.
-- Key and request are digests that only a gateway with the secret can compute.
CREATE TABLE IF NOT EXISTS gateway_idempotency_keys (
    id      TEXT    PRIMARY KEY NOT NULL,
    request TEXT    NOT NULL,
    used_at INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS gateway_idempotency_keys_used_at
    ON gateway_idempotency_keys (used_at);
