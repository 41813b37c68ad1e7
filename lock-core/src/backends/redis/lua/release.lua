#!lua flags=allow-oom
-- Ends a lease of this holder and token, and tells one waiter per client.
--
-- KEYS[1] lease of the resource
-- KEYS[2] tombstone of this holder
-- ARGV[1] holder
-- ARGV[2] token
-- ARGV[3] how long the tombstone stays, in ms
-- ARGV[4] channel of the resource
--
-- Returns {"released"} | {"not_holder"}
--
-- Idempotent: while the tombstone stays, a release that is sent again is released again. An ACL
-- without channels costs the push, not the release.

local lease = redis.call("GET", KEYS[1])
local token, holder, expires
if lease then token, holder, expires = lease:match("^(%d+):(%x+):[%x,]+:(%d+)$") end

if token ~= ARGV[2] or holder ~= ARGV[1] then
  if redis.call("GET", KEYS[2]) == ARGV[2] then return {"released"} end
  return {"not_holder"}
end

local time = redis.call("TIME")
if expires - (time[1] * 1000 + math.floor(time[2] / 1000)) <= 0 then return {"not_holder"} end
redis.call("SET", KEYS[2], ARGV[2], "PX", ARGV[3])
redis.call("DEL", KEYS[1])
redis.pcall("PUBLISH", ARGV[4], "")
return {"released"}
