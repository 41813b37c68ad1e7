-- IF NOT EXISTS needs the right to create, even if the table exists. A role may only have the right
-- to use the table, so CREATE TABLE is skipped for an existing table.
DO $$
BEGIN
    IF to_regclass('demo_accounts') IS NOT NULL THEN
        RETURN;
    END IF;
    -- This is one transaction. IF NOT EXISTS alone does not help two programs that start at the
    -- same time: both see no table, and the slower one fails. 7077 is an arbitrary number.
    PERFORM pg_advisory_xact_lock(7077, 2);
    CREATE TABLE IF NOT EXISTS demo_accounts (
        id      text   PRIMARY KEY,
        balance bigint NOT NULL CHECK (balance BETWEEN 0 AND 999999999999999)
    );
END
$$;
