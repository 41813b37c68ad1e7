-- The log of administrators' changes to issuer and marks, with their reasons.
CREATE TABLE IF NOT EXISTS fenced_admin_log (
  id          BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  done_at     TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
  done_by     VARCHAR(300) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  action      VARCHAR(16) CHARACTER SET ascii COLLATE ascii_bin NOT NULL
              CHECK (action IN ('seal', 'seal mark', 'reset mark')),
  resource    VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin,
  from_token  BIGINT,
  to_token    BIGINT,
  from_issuer VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  to_issuer   VARCHAR(64) CHARACTER SET ascii COLLATE ascii_bin,
  reason      VARCHAR(500) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL
              CHECK (TRIM(reason) <> '')
) ENGINE = InnoDB;
