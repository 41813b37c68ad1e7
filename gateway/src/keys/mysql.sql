-- CREATE TABLE needs the right to create, even if the table exists. A user may only have the right
-- to use the table, so CREATE TABLE is skipped for an existing table.
SET @palisade = IF(
    EXISTS (SELECT 1 FROM information_schema.tables
            WHERE table_schema = DATABASE() AND table_name = 'gateway_idempotency_keys'),
    'DO 0',
    -- The first request of each Idempotency-Key, and when the key was used last, in seconds since
    -- 1970. Key and request are digests that only a gateway with the secret can compute.
    'CREATE TABLE IF NOT EXISTS gateway_idempotency_keys (
        id      varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        request varchar(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
        used_at bigint NOT NULL,
        KEY gateway_idempotency_keys_used_at (used_at)
     ) ENGINE = InnoDB');
PREPARE palisade FROM @palisade;
EXECUTE palisade;
DEALLOCATE PREPARE palisade;
-- Each of these statements fails if its right is missing, and changes nothing.
INSERT INTO gateway_idempotency_keys (id, request, used_at) SELECT '', '', 0 FROM DUAL WHERE FALSE;
UPDATE gateway_idempotency_keys SET used_at = used_at WHERE FALSE;
DELETE FROM gateway_idempotency_keys WHERE FALSE;
