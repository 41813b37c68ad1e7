#!lua flags=allow-oom
-- Begins with serving.lua, lease.lua.
--
-- Ends one attempt to acquire: its late requests are refused, and the lease that it was granted
-- ends, unless another attempt of the same holder relies on that lease.
--
-- KEYS[1] marker of the node
-- KEYS[2] lease of the resource
-- KEYS[3] what has ended of this holder
-- ARGV[1] holder
-- ARGV[2] attempt
--
-- Returns "cancelled" | {"no_state"} | {"not_serving", marker}
--
-- Idempotent.

local found = redis.call("MGET", KEYS[1], KEYS[2])
local incarnation, wrong = serving(found[1])
if not incarnation then return wrong end
remember(KEYS[3], ARGV[2])
local lease = load(KEYS[2], found[2])
if lease and lease.holder == ARGV[1] and (lease.left > 0 or not lease.raised) then
  leave(KEYS[2], lease, ARGV[2])
end
return "cancelled"
