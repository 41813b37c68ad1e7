-- Takes a number. The caller has compared it under BEGIN IMMEDIATE.
-- $1 resource, $2 token, $3 digest of the holder, $4 seq
INSERT INTO main.fenced_sequence (resource, token, holder, seq)
VALUES ($1, $2, $3, $4)
ON CONFLICT (resource) DO UPDATE
  SET token = excluded.token, holder = excluded.holder, seq = excluded.seq
