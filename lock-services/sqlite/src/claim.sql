-- ?1 resource, ?2 token, ?3 kept digest of the holder, ?4 issuer
INSERT INTO main.fenced_high_water_mark (resource, token, holder, issuer)
SELECT ?1, ?2, ?3, s.name FROM main.fenced_lock_service s WHERE s.name = ?4
ON CONFLICT (resource) DO UPDATE
  SET token = excluded.token, holder = excluded.holder, claimed_at = excluded.claimed_at
  WHERE (excluded.token > token OR excluded.token = token AND excluded.holder = holder)
    AND excluded.issuer = issuer
