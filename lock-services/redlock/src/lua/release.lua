#!lua flags=allow-oom
-- Begins with first_release.lua, serving.lua.
--
-- Ends the lease of this holder and token. The acquisition has ended then: late requests of it are
-- refused.
--
-- KEYS[1] marker of the node
-- KEYS[2] lease of the resource
-- KEYS[3] what has ended of this holder
-- ARGV[1] holder
-- ARGV[2] token
--
-- Returns "released" | "not_holder" | {"no_state"} | {"not_serving", marker}
--
-- Idempotent: while it is remembered, a release that is sent again is released again. A lease of
-- this holder that was never raised is one that did not count: it ends too, as "not_holder".

local incarnation, wrong = serving(marker)
if not incarnation then return wrong end
local holder, word, ended = ARGV[1], "=" .. ARGV[2], found[3]
if ended and ("," .. ended .. ","):find("," .. word .. ",", 1, true) then return "released" end
if not packed or packed:sub(1, #holder) ~= holder then return "not_holder" end
-- As lease.lua has it.
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
