#!lua
-- A value in Redis that only the newest claimed grant reads and writes.
--
-- Redis runs a script as a whole, so nothing comes between the check of the mark and the write.
-- The mark has no time to live and nothing deletes it: it has to outlive the value. Every verb may
-- be sent twice.
--
-- KEYS[1] mark of the resource: a hash of token, holder and issuer
-- KEYS[2] value of the resource, in the same slot as the mark
-- ARGV[1] "claim", "get" or "set"
-- ARGV[2] fencing token; it has 15 digits at most, which a Lua number holds exactly
-- ARGV[3] digest of the holder, never the holder itself
-- ARGV[4] issuer
-- ARGV[5] new value, for "set"
--
-- Returns {"claimed"} | {"value", value} | {"none"} | {"written"}
-- | {"unclaimed"} | {"stale", high_water} | {"duplicate"} | {"issuer", current}

local mark = redis.call("HMGET", KEYS[1], "token", "holder", "issuer")
local high_water = tonumber(mark[1] or "0")
local verb, token = ARGV[1], tonumber(ARGV[2])

-- Tokens of two lock services cannot be compared.
if mark[1] and mark[3] ~= ARGV[4] then return {"issuer", mark[3]} end
-- Somebody newer has claimed the resource: this holder has lost its lease.
if token < high_water then return {"stale", mark[1]} end
-- The lock service issued the same token twice. The first one who claimed it has it.
if token == high_water and mark[2] ~= ARGV[3] then return {"duplicate"} end

-- Only a claim moves the mark. A write that moved it could come late, from a stale holder, before
-- the newer holder has claimed here. It would then shut out the newer holder.
if verb == "claim" then
  if token > high_water then
    redis.call("HSET", KEYS[1], "token", ARGV[2], "holder", ARGV[3], "issuer", ARGV[4])
  end
  return {"claimed"}
end
if token > high_water then return {"unclaimed"} end

if verb == "get" then
  local value = redis.call("GET", KEYS[2])
  if value then return {"value", value} end
  return {"none"}
end
if verb == "set" then
  redis.call("SET", KEYS[2], ARGV[5])
  return {"written"}
end
return redis.error_reply("ERR the verb is claim, get or set")
