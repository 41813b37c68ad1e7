-- Takes a number if it is greater than the last one of this grant, and locks the row in any case.
-- ? resource, ? token, ? digest of the holder, ? seq, ? transaction
--
-- The assignments run from left to right and see each other's results: what the conditions ask for
-- comes last.
INSERT INTO fenced_sequence (resource, token, holder, seq, tx)
VALUES (?, ?, ?, ?, ?)
ON DUPLICATE KEY UPDATE
  tx     = IF(token <> VALUES(token) OR holder <> VALUES(holder) OR seq < VALUES(seq),
              VALUES(tx), tx),
  seq    = IF(token <> VALUES(token) OR holder <> VALUES(holder) OR seq < VALUES(seq),
              VALUES(seq), seq),
  holder = VALUES(holder),
  token  = VALUES(token)
