#!lua
-- Brings a node into service that was healed: a counter that is missing begins at its base from now
-- on.
--
-- KEYS[1] marker of the node
-- ARGV[1] incarnation in which it was healed
--
-- Returns "serves" | {"quiet", left_ms}: it may have forgotten a lease that goes on
--       | {"other", marker}: it is in another incarnation, or something else
--
-- Right only if N/2 + 1 others were listed in this incarnation and everything listed is here.
-- Idempotent.

-- For how many ms it must not grant yet: the longest lease has to be over, and what nodes add to it
-- for clocks that run unevenly. At most 0 if that is so. The incarnation begins with the time at
-- which the node was taken in, in microseconds.
local function quiet_left(incarnation, longest)
  local time = redis.call("TIME")
  local since = incarnation:match("^%d+") / 1000
  return math.ceil(since + longest * 1.01 + 2 - time[1] * 1000 - time[2] / 1000)
end

local marker = redis.call("GET", KEYS[1]) or ""
local incarnation, state, longest = marker:match("^([^:]+):([sh]):%d+:(%d+):")
if incarnation ~= ARGV[1] then return {"other", marker} end
if state == "s" then return "serves" end
local quiet = quiet_left(incarnation, longest)
if quiet > 0 then return {"quiet", string.format("%d", quiet)} end
redis.call("SET", KEYS[1], incarnation .. ":s" .. marker:sub(#incarnation + 3))
return "serves"
