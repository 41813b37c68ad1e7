-- CREATE TABLE needs the right to create, even if the table exists. A user may only have the right
-- to use the table, so CREATE TABLE is skipped for an existing table.
SET @palisade = IF(
    EXISTS (SELECT 1 FROM information_schema.tables
            WHERE table_schema = DATABASE() AND table_name = 'demo_accounts'),
    'DO 0',
    'CREATE TABLE IF NOT EXISTS demo_accounts (
        id      varchar(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
        balance bigint NOT NULL CHECK (balance BETWEEN 0 AND 999999999999999)
     ) ENGINE = InnoDB');
PREPARE palisade FROM @palisade;
EXECUTE palisade;
DEALLOCATE PREPARE palisade;
