#!lua
-- Begins with rule.lua.
--
-- Raises the mark of a resource to a grant, unless it already shows that grant. The mark has no
-- time to live, and nothing deletes it. The writes of the grant are numbered from the start. Sent
-- again, it changes nothing.
--
-- KEYS[1] mark of the resource
-- ARGV[1] token
-- ARGV[2] digest of the holder
-- ARGV[3] issuer
--
-- Returns {"claimed"} | {"stale", high_water} | {"duplicate"} | {"issuer", current}

if presented > high_water then
  redis.call("HSET", KEYS[1], "token", ARGV[1], "holder", holder, "issuer", issuer, "seq", 0)
end
return {"claimed"}
