-- Raises a mark if the token is above it, and locks its row in any case.
-- ? resource, ? token, ? digest of the holder, ? issuer
--
-- The assignments run from left to right and see each other's results: the token comes last.
-- VALUES() is the one spelling that both MySQL and MariaDB know.
INSERT INTO fenced_mark (resource, token, holder, issuer)
VALUES (?, ?, ?, ?)
ON DUPLICATE KEY UPDATE
  holder     = IF(issuer = VALUES(issuer) AND token < VALUES(token), VALUES(holder), holder),
  claimed_at = IF(issuer = VALUES(issuer) AND token < VALUES(token), NOW(3), claimed_at),
  token      = IF(issuer = VALUES(issuer) AND token < VALUES(token), VALUES(token), token)
