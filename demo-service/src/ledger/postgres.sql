-- IF NOT EXISTS needs the right to create, whatever is there: so a role that may only use the
-- table must not come so far.
DO $$
BEGIN
    IF to_regclass('demo_accounts') IS NOT NULL THEN
        RETURN;
    END IF;
    -- One transaction. IF NOT EXISTS alone does not help two programs that start at the same time:
    -- both see nothing and the slower one fails. 7077 is ours by choice, nothing else.
    PERFORM pg_advisory_xact_lock(7077, 2);
    CREATE TABLE IF NOT EXISTS demo_accounts (
        id      text   PRIMARY KEY,
        balance bigint NOT NULL CHECK (balance BETWEEN 0 AND 999999999999999)
    );
END
$$;
