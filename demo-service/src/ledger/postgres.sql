-- IF NOT EXISTS needs the right to create, whatever is there: so a role that may only use the
-- tables must not come so far.
DO $$
BEGIN
    IF to_regclass('demo_accounts') IS NOT NULL
        AND to_regclass('demo_idempotency_keys') IS NOT NULL
        AND to_regclass('demo_idempotency_keys_used_at') IS NOT NULL
    THEN
        RETURN;
    END IF;
    -- One transaction. IF NOT EXISTS alone does not help two gateways that start at the same time:
    -- both see nothing and the slower one fails. 7077 is ours by choice, nothing else.
    PERFORM pg_advisory_xact_lock(7077, 1);
    CREATE TABLE IF NOT EXISTS demo_accounts (
        id      text   PRIMARY KEY,
        balance bigint NOT NULL CHECK (balance BETWEEN 0 AND 999999999999999)
    );
    -- What each Idempotency-Key was first used for: digests that nobody can compute without the
    -- secret of the gateways, and when it was used last, in seconds since 1970.
    CREATE TABLE IF NOT EXISTS demo_idempotency_keys (
        id      text   PRIMARY KEY,
        request text   NOT NULL,
        used_at bigint NOT NULL
    );
    CREATE INDEX IF NOT EXISTS demo_idempotency_keys_used_at ON demo_idempotency_keys (used_at);
END
$$;
