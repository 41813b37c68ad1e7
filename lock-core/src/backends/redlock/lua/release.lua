#!lua flags=allow-oom
-- Begins with serving.lua, lease.lua.
--
-- Ends the lease of this holder and token. The acquisition has ended then: late requests of it are
-- refused.
--
-- KEYS[1] marker of the node
-- KEYS[2] lease of the resource
-- KEYS[3] what has ended of this holder
-- ARGV[1] holder
-- ARGV[2] token
--
-- Returns "released" | "not_holder" | {"no_state"} | {"not_serving", marker}
--
-- Idempotent: while it is remembered, a release that is sent again is released again. A lease of
-- this holder that was never raised is one that did not count: it ends too, as "not_holder".

local holder, word = ARGV[1], "=" .. ARGV[2]
local ended = redis.call("GET", KEYS[3])
if ended and ("," .. ended .. ","):find("," .. word .. ",", 1, true) then return "released" end
local lease = load(KEYS[2])
if not lease or lease.holder ~= holder then return "not_holder" end
if not lease.raised then
  redis.call("DEL", KEYS[2])
  return "not_holder"
end
if lease.token ~= ARGV[2] or lease.left <= 0 then return "not_holder" end
redis.call("DEL", KEYS[2])
remember(KEYS[3], word)
return "released"
