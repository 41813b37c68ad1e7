-- The rest of an INSERT that raises a mark: only if the token is above it. The row is locked in any
-- case.
--
-- The assignments run from left to right and see each other's results: the token comes last.
-- VALUES() is the one spelling that both MySQL and MariaDB know.
ON DUPLICATE KEY UPDATE
  holder     = IF(fenced_high_water_mark.issuer = VALUES(issuer) AND token < VALUES(token),
                  VALUES(holder), holder),
  claimed_at = IF(fenced_high_water_mark.issuer = VALUES(issuer) AND token < VALUES(token),
                  NOW(3), claimed_at),
  token      = IF(fenced_high_water_mark.issuer = VALUES(issuer) AND token < VALUES(token),
                  VALUES(token), token)
