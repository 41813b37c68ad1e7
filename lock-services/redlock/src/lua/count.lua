#!lua
-- Begins with serving.lua, greater.lua, counts.lua.
--
-- Counts up and returns the counts, for a node that is healed. Raises that are under way to this
-- node are refused after that.
--
-- KEYS[1] marker of the node
-- KEYS[2] first counter, and one key more for every further one
-- ARGV[1] incarnation that the node has to be in
--
-- Returns {"counted", word, ..}: for each counter, in order, its count, or why it has none:
--         "broken_counter" | "exhausted"
--       | "other_incarnation" | {"no_state"} | {"not_serving", marker}
--
-- If it is sent again, it counts up again. Atomic for each counter.

local incarnation, base = serving(redis.call("GET", KEYS[1]))
if not incarnation then
  local wrong = base
  return wrong
end
if incarnation ~= ARGV[1] then return "other_incarnation" end
local words = {}
for i = 2, #KEYS do
  local count, wrong = count_up(KEYS[i], base)
  words[i - 1] = count or wrong[1]
end
return {"counted", unpack(words)}
