-- Ends one attempt to acquire: a lease that it got is given back, a late request of it is refused.
--
-- KEYS[1] lease of the resource
-- KEYS[2] mark of an ended attempt: this holder and attempt
-- ARGV[1] holder
-- ARGV[2] attempt
-- ARGV[3] how long the mark stays, in ms
-- ARGV[4] channel of the resource
--
-- Returns {"cancelled"}
--
-- Idempotent. A lease that another attempt of the same holder was told of stays.

redis.call("SET", KEYS[2], "", "PX", ARGV[3])
local lease = redis.call("GET", KEYS[1])
if lease then
  local holder, attempt = lease:match("^%d+:(%x+):(%x+):%d+$")
  if holder == ARGV[1] and attempt == ARGV[2] then
    redis.call("DEL", KEYS[1])
    redis.pcall("PUBLISH", ARGV[4], "")
  end
end
return {"cancelled"}
