  SELECT CASE
    WHEN NOT EXISTS (SELECT 1 FROM fenced_entered)
      THEN RAISE(ABORT, {unfenced})
    WHEN NOT EXISTS (SELECT 1 FROM fenced_entered e WHERE e.resource = {resource})
      THEN RAISE(ABORT, {wrong})
    WHEN NOT EXISTS (SELECT 1 FROM fenced_entered e JOIN fenced_mark m USING (resource)
                     WHERE e.resource = {resource} AND m.token = e.token)
      THEN RAISE(ABORT, {stale})
  END;
