#!lua flags=no-writes
-- Begins with serving.lua.
--
-- Says which of these counters a node that lost its state does not have.
--
-- KEYS[1] marker of the node
-- KEYS[2] first counter, and one key more for every further one
-- ARGV[1] life that it is about
--
-- Returns {"missing", key, ..} | "other_life" | {"no_state"} | {"not_serving", marker}

local life, wrong = serving(redis.call("GET", KEYS[1]))
if not life then return wrong end
if life ~= ARGV[1] then return "other_life" end
local counts, missing = redis.call("MGET", unpack(KEYS, 2)), {}
for i = 2, #KEYS do
  if not counts[i - 1] then missing[#missing + 1] = KEYS[i] end
end
return {"missing", unpack(missing)}
