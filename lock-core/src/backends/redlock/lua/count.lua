#!lua
-- Begins with serving.lua, greater.lua, counts.lua.
--
-- Counts up and says the count, for a node whose counter is to be made anew. It also refuses the
-- raises that are under way to this node.
--
-- KEYS[1] marker of the node
-- KEYS[2] counter of the resource
--
-- Returns {"counted", count} | {"to_heal", life} | {"broken_counter"} | {"exhausted"}
--       | {"no_state"} | {"not_serving", marker}

local life, state, base = serving(redis.call("GET", KEYS[1]))
if not life then
  local wrong = state
  return wrong
end
local count, wrong = count_up(KEYS[2], life, state, base)
if not count then return wrong end
return {"counted", count}
