-- IF NOT EXISTS needs the right to create, whatever is there: so a role that may only use the
-- tables must not come so far.
DO $$
DECLARE
    missing text;
BEGIN
    IF to_regclass('demo_accounts') IS NOT NULL
        AND to_regclass('demo_idempotency_keys') IS NOT NULL
        AND to_regclass('demo_idempotency_keys_used_at') IS NOT NULL
    THEN
        -- Asked for a list, has_table_privilege says whether the role has one of it.
        SELECT string_agg(format('GRANT %s ON %s TO %I', needs.rights, needs.name, current_user),
                          '; ')
            INTO missing
            FROM (VALUES
                ('demo_accounts', 'SELECT, INSERT, UPDATE'),
                ('demo_idempotency_keys', 'SELECT, INSERT, UPDATE, DELETE')
            ) AS needs (name, rights)
            WHERE NOT (SELECT bool_and(has_table_privilege(needs.name, one))
                       FROM unnest(string_to_array(needs.rights, ', ')) one);
        IF missing IS NOT NULL THEN
            RAISE insufficient_privilege
                USING MESSAGE = 'this role may not use the accounts: let their owner say '
                    || missing || '; see docs/operations.md';
        END IF;
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
