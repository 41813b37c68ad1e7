#!lua
-- Changes the marker of a node, if it is still the marker that the client has seen.
--
-- KEYS[1] marker of the node
-- ARGV[1] marker that was seen, or "" for none
-- ARGV[2] incarnation to go on in, or "" to draw another one
-- ARGV[3] nonce: together with the clock of the node it makes the incarnation that is drawn
-- ARGV[4] what follows the incarnation in the marker: ":state:base:longest:run_id[+]"
--
-- Returns {"marked", marker} | {"other", marker}: it is something else by now, or nothing

local marker = redis.call("GET", KEYS[1]) or ""
if marker ~= ARGV[1] then return {"other", marker} end
local incarnation = ARGV[2]
if incarnation == "" then
  local time = redis.call("TIME")
  incarnation = string.format("%d%06d-%s", time[1], time[2], ARGV[3])
end
marker = incarnation .. ARGV[4]
redis.call("SET", KEYS[1], marker)
return {"marked", marker}
