#!lua flags=allow-oom
-- Begins with first_release.lua, serving.lua.
--
-- Ends the lease of this holder and token, and so the acquisition. Its late requests are refused.
--
-- KEYS[1] marker of the node
-- KEYS[2] lease of the resource
-- KEYS[3] what has ended of this holder
-- ARGV[1] holder
-- ARGV[2] token
--
-- Returns "released" | "not_holder" | {"no_state"} | {"not_serving", marker}
--
-- Idempotent: while the release is remembered, a copy of it gets the same answer. A lease of this
-- holder that was never raised did not count. It ends, too, with the answer "not_holder".

local incarnation, wrong = serving(marker)
if not incarnation then return wrong end
local holder, word, ended = ARGV[1], "=" .. ARGV[2], found[3]
if ended and ("," .. ended .. ","):find("," .. word .. ",", 1, true) then return "released" end
if not packed or packed:sub(1, #holder) ~= holder then return "not_holder" end
-- The text has the form of lease.lua.
local token, drift = packed:match("^%x+:%x+:(%d+):%d+:(%d+):")
if token == "0" then
  redis.call("DEL", KEYS[2])
  return "not_holder"
end
if token ~= ARGV[2] or redis.call("PTTL", KEYS[2]) - ENDED_MS - drift <= 0 then
  return "not_holder"
end
redis.call("DEL", KEYS[2])
redis.call("SET", KEYS[3], ended and word .. "," .. ended or word, "PX", ENDED_TEXT)
return "released"
