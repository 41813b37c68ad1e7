#!lua
-- Begins with serving.lua, quiet.lua.
--
-- Says of a node that lost its state that it has no gaps any more: from now on it serves as those
-- that never lost theirs, and a counter that is missing begins at its base.
--
-- KEYS[1] marker of the node
-- ARGV[1] life that it is said of
--
-- Returns "whole" | "other_life" | {"quiet", left_ms}: it may have forgotten a lease that goes on
--       | {"no_state"} | {"not_serving", marker}
--
-- Right only if N/2 + 1 others were listed in this life and everything listed is here. Idempotent.

local marker = redis.call("GET", KEYS[1])
local life, state, _, longest = serving(marker)
if not life then
  local wrong = state
  return wrong
end
if life ~= ARGV[1] then return "other_life" end
if state == "s" then return "whole" end
local quiet = quiet_left(life, longest)
if quiet > 0 then return {"quiet", string.format("%d", quiet)} end
redis.call("SET", KEYS[1], life .. ":s" .. marker:sub(#life + 3))
return "whole"
