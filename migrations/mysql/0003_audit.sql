-- The audit: what was committed under which grant. Off unless the store is told otherwise.

-- One row per committed transaction and resource. Nothing here is read by the store: rows may be
-- moved elsewhere or deleted. `tx` is the name of the transaction, which its rows have in common;
-- `db_user` the account that had logged in, with its host; `holder` a fingerprint, as in logs.
CREATE TABLE IF NOT EXISTS fenced_audit (
  id       BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  tx       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  began_at TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  db_user  VARCHAR(384) NOT NULL,
  resource VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token    BIGINT NOT NULL,
  issuer   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  holder   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  seq      BIGINT,
  KEY (tx)
) ENGINE = InnoDB;
