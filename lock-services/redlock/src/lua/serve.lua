#!lua
-- Brings a node that was healed into service. From now on a missing counter begins at the base of
-- the node.
--
-- KEYS[1] marker of the node
-- ARGV[1] incarnation in which it was healed
--
-- Returns "serves" | {"quiet", left_ms}: it may have forgotten a lease that goes on
--       | {"other", marker}: it is in another incarnation, or something else
--
-- Right only if N/2 + 1 other nodes were listed in this incarnation and this node has all listed
-- counters. Idempotent.

-- The time in ms for which the node must not grant yet. The longest lease has to be over, and also
-- the drift that nodes add for clocks that run unevenly. At most 0 if both are over. The
-- incarnation begins with the time at which the node was taken in, in microseconds.
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
