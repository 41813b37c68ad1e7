-- The transactions that are under way, and their grants: a note that each writes when it begins
-- and deletes before it commits. So no other transaction ever sees one, but by a dirty read: a
-- claim that has waited in vain looks there for what it has waited.
CREATE TABLE IF NOT EXISTS fenced_open_transaction (
  connection_id BIGINT UNSIGNED NOT NULL,
  resource      VARCHAR(256) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  token         BIGINT NOT NULL,
  tx_name       VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
  PRIMARY KEY (connection_id, resource)
) ENGINE = InnoDB;
