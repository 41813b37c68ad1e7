#!lua
-- Begins with rule.lua.
--
-- Reads the value of a resource for the grant that its mark shows. Changes nothing, but has no flag
-- that says so, because then a replica would run it.
--
-- KEYS[1] mark of the resource
-- KEYS[2] value
-- ARGV[1] token
-- ARGV[2] digest of the holder
-- ARGV[3] issuer
--
-- Returns {"value", value} | {"none"} | {"unclaimed"}
-- | {"stale", high_water} | {"duplicate"} | {"issuer", current}

if presented > high_water then return {"unclaimed"} end
local value = redis.call("GET", KEYS[2])
if value then return {"value", value} end
return {"none"}
