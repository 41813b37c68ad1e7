-- Raises a mark. The caller has checked it under BEGIN IMMEDIATE.
-- $1 resource, $2 token, $3 kept digest of the holder, $4 issuer
INSERT INTO main.fenced_high_water_mark (resource, token, holder, issuer)
VALUES ($1, $2, $3, $4)
ON CONFLICT (resource) DO UPDATE
  SET token = excluded.token, holder = excluded.holder, claimed_at = excluded.claimed_at
