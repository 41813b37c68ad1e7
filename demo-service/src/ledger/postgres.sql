-- One message, so one transaction. IF NOT EXISTS alone does not help two gateways that start at
-- the same time: both see nothing and the slower one fails. 7077 is ours by choice, nothing else.
SELECT pg_advisory_xact_lock(7077, 1);
CREATE TABLE IF NOT EXISTS demo_accounts (
    id      text   PRIMARY KEY,
    balance bigint NOT NULL CHECK (balance BETWEEN 0 AND 999999999999999)
);
