  SELECT CASE
    WHEN NOT EXISTS (SELECT 1 FROM fenced_open_transaction)
      THEN RAISE(ABORT, {unfenced})
    WHEN NOT EXISTS (SELECT 1 FROM fenced_open_transaction e WHERE e.resource = {resource})
      THEN RAISE(ABORT, {wrong})
    WHEN NOT EXISTS (SELECT 1 FROM fenced_open_transaction e
                     JOIN fenced_high_water_mark m USING (resource)
                     WHERE e.resource = {resource} AND m.token = e.token)
      THEN RAISE(ABORT, {stale})
  END;
