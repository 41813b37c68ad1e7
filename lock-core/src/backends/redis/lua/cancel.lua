#!lua flags=allow-oom
-- Ends one attempt to acquire: a late request of it is refused, and a lease that it was told of is
-- given back, unless another attempt of the same holder was told of it too.
--
-- KEYS[1] lease of the resource
-- KEYS[2] tombstone of this holder and attempt
-- ARGV[1] holder
-- ARGV[2] attempt
-- ARGV[3] how long the tombstone stays, in ms
-- ARGV[4] channel of the resource
--
-- Returns {"cancelled"}
--
-- Idempotent.

redis.call("SET", KEYS[2], "", "PX", ARGV[3])
local lease = redis.pcall("GET", KEYS[1])
if not lease or type(lease) == "table" then return {"cancelled"} end
local token, holder, attempts, expires = lease:match("^(%d+):(%x+):([%x,]+):(%d+)$")
if holder ~= ARGV[1] then return {"cancelled"} end

local others = {}
for attempt in attempts:gmatch("%x+") do
  if attempt ~= ARGV[2] then others[#others + 1] = attempt end
end
if #others > 0 then
  local rest = token .. ":" .. holder .. ":" .. table.concat(others, ",") .. ":" .. expires
  if rest ~= lease then redis.call("SET", KEYS[1], rest, "KEEPTTL") end
else
  redis.call("DEL", KEYS[1])
  redis.pcall("PUBLISH", ARGV[4], "")
end
return {"cancelled"}
