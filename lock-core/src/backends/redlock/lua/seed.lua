#!lua
-- Begins with serving.lua.
--
-- Makes counters anew at a node that lost its state, each if there is none, and if the node has not
-- lost its state again.
--
-- KEYS[1] marker of the node
-- KEYS[2] first counter, and one key more for every further one
-- ARGV[1] life that it is for
-- ARGV[2] count of the first counter, and one argument more for every further one: the greatest of
--         N/2 + 1 other nodes, each counted up
--
-- Returns "seeded" | "not_needed": none was missing | "other_life"
--       | {"no_state"} | {"not_serving", marker}
--
-- Right whoever sends it, and however often. Atomic per counter.

local life, state = serving(redis.call("GET", KEYS[1]))
if not life then
  local wrong = state
  return wrong
end
if life ~= ARGV[1] then return "other_life" end
if state ~= "h" then return "not_needed" end
local made = 0
for i = 2, #KEYS do
  if redis.call("SET", KEYS[i], ARGV[i], "NX") then made = made + 1 end
end
if made == 0 then return "not_needed" end
return "seeded"
