-- The mark, and whether any table is protected.
-- $1 resource
SELECT token, issuer, holder, EXISTS (SELECT 1 FROM main.fenced_protected)
FROM main.fenced_high_water_mark WHERE resource = $1
