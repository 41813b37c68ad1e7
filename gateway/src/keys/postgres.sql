-- IF NOT EXISTS needs the right to create, even if the table exists. A role may only have the right
-- to use the table, so CREATE TABLE is skipped for an existing table.
DO $$
BEGIN
    IF to_regclass('gateway_idempotency_keys') IS NOT NULL
        AND to_regclass('gateway_idempotency_keys_used_at') IS NOT NULL
    THEN
        -- For a list of privileges, has_table_privilege is true if the role has any of them.
        IF NOT (SELECT bool_and(has_table_privilege('gateway_idempotency_keys', one))
                FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) one)
        THEN
            RAISE insufficient_privilege
                USING MESSAGE = format(
                    'this role may not use the table of idempotency keys: let its owner run GRANT '
                    'SELECT, INSERT, UPDATE, DELETE ON gateway_idempotency_keys TO %I; see '
                    'docs/operations/rights.md', current_user);
        END IF;
        RETURN;
    END IF;
    -- This is one transaction. IF NOT EXISTS alone does not help two gateways that start at the
    -- same time: both see no table, and the slower one fails. 7077 is an arbitrary number.
    PERFORM pg_advisory_xact_lock(7077, 1);
    -- The first request of each Idempotency-Key, and when the key was used last, in seconds since
    -- 1970. Key and request are digests that only a gateway with the secret can compute.
    CREATE TABLE IF NOT EXISTS gateway_idempotency_keys (
        id      text   PRIMARY KEY,
        request text   NOT NULL,
        used_at bigint NOT NULL
    );
    CREATE INDEX IF NOT EXISTS gateway_idempotency_keys_used_at
        ON gateway_idempotency_keys (used_at);
END
$$;
