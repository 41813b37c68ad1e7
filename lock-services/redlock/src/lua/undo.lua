#!lua flags=allow-oom
-- Begins with serving.lua, lease.lua.
--
-- Undoes one try: its lease ends if no other attempt relies on the lease. If there is no lease of
-- this try, its late requests are refused.
--
-- KEYS[1] marker of the node
-- KEYS[2] lease of the resource
-- KEYS[3] what has ended of this holder
-- ARGV[1] holder
-- ARGV[2] nonce of the try
-- ARGV[3] attempt
--
-- Returns "undone" | {"no_state"} | {"not_serving", marker}
--
-- Idempotent. Compares the nonce, so a late undo does not touch a later try of the same attempt.

local found = redis.call("MGET", KEYS[1], KEYS[2])
local incarnation, wrong = serving(found[1])
if not incarnation then return wrong end
local lease = load(KEYS[2], found[2])
if lease and lease.holder == ARGV[1] and lease.nonce == ARGV[2] then
  leave(KEYS[2], lease, ARGV[3])
else
  remember(KEYS[3], ARGV[2])
end
return "undone"
