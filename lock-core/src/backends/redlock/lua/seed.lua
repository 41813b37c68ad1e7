#!lua
-- Begins with serving.lua.
--
-- Makes the counter of a resource anew at a node that lost its state, if there is none, and if the
-- node has not lost its state again.
--
-- KEYS[1] marker of the node
-- KEYS[2] counter of the resource
-- ARGV[1] life that it is for
-- ARGV[2] count: the greatest of N/2 + 1 other nodes, each counted up
--
-- Returns "seeded" | "not_needed" | "other_life" | {"no_state"} | {"not_serving", marker}
--
-- Right whoever sends it, and however often.

local life, state = serving(redis.call("GET", KEYS[1]))
if not life then
  local wrong = state
  return wrong
end
if life ~= ARGV[1] then return "other_life" end
if state ~= "h" then return "not_needed" end
if redis.call("SET", KEYS[2], ARGV[2], "NX") then return "seeded" end
return "not_needed"
