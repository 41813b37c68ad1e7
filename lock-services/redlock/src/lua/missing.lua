#!lua flags=no-writes
-- Begins with healing.lua.
--
-- Looks for those of these counters that a node does not have that is being healed.
--
-- KEYS[1] marker of the node
-- KEYS[2] first counter, and one key more for every further one
-- ARGV[1] incarnation in which it is healed
--
-- Returns {"missing", key, ..} | {"other", marker}: it is not being healed in this incarnation

local yes, wrong = healing(redis.call("GET", KEYS[1]), ARGV[1])
if not yes then return wrong end
local counts, missing = redis.call("MGET", unpack(KEYS, 2)), {}
for i = 2, #KEYS do
  if not counts[i - 1] then missing[#missing + 1] = KEYS[i] end
end
return {"missing", unpack(missing)}
