-- The store rule for MySQL 8 and MariaDB 10.6 or newer: one high-water mark per protected resource.
-- Marks are checked by locking reads, which see the latest committed row at every isolation level.
--
-- The column "holder" has the SHA-256, as 64 hex digits, of the text that a holder presents.
-- Programs compute it before they send it. So a reader of the tables, of a backup, of the binary
-- log or of the general log sees which marks have one holder, and cannot act as that holder,
-- neither here nor at the lock service. A client that computes it in SQL, by SHA2('the text', 256),
-- shows the text to the readers of the general log and of the slow query log.
--
-- The tables do not enforce the rule: a user who may change them can write past it.

-- The one lock service whose tokens are taken. The first claim sets it.
CREATE TABLE IF NOT EXISTS fenced_lock_service (
  only_row TINYINT NOT NULL DEFAULT 1 PRIMARY KEY CHECK (only_row = 1),
  name     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
           CHECK (name <> '' AND name NOT REGEXP '[^-A-Za-z0-9_.:]')
) ENGINE = InnoDB;

-- The greatest token claimed per resource, and by whom. It never falls; rows are never deleted.
CREATE TABLE IF NOT EXISTS fenced_high_water_mark (
  resource   VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY
             CHECK (resource <> '' AND resource NOT REGEXP '[^!-~]'
                    AND LOCATE('"', resource) = 0 AND LOCATE(x'5C', resource) = 0),
  token      BIGINT NOT NULL CHECK (token BETWEEN 1 AND 999999999999999),
  holder     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  issuer     VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
             CHECK (issuer <> '' AND issuer NOT REGEXP '[^-A-Za-z0-9_.:]'),
  claimed_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
) ENGINE = InnoDB;
