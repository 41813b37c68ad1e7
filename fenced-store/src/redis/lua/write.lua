#!lua
-- Begins with rule.lua.
--
-- Sets or deletes the value of a resource for the grant that its mark shows, if the value is the
-- expected one. The mark outlives the value. Sent again, it does the same again, but compares with
-- the value as it is then. A write that has a number is made once, and none with a smaller number
-- after it.
--
-- KEYS[1] mark of the resource
-- KEYS[2] value
-- ARGV[1] token
-- ARGV[2] digest of the holder
-- ARGV[3] issuer
-- ARGV[4] what is expected: "anything", "nothing", or "this"
-- ARGV[5] the value that is expected
-- ARGV[6] "set" or "delete"
-- ARGV[7] the new value
-- ARGV[8] its time to live in ms, 0 for none
-- ARGV[9] the number of the write, 0 for none
--
-- Returns {"written"} | {"found", value} | {"none"} | {"late", last} | {"unclaimed"}
-- | {"stale", high_water} | {"duplicate"} | {"issuer", current}

if presented > high_water then return {"unclaimed"} end
local seq = tonumber(ARGV[9])
if seq > 0 then
  local last = redis.call("HGET", KEYS[1], "seq") or "0"
  if seq <= tonumber(last) then return {"late", last} end
end
if ARGV[4] ~= "anything" then
  local value = redis.call("GET", KEYS[2])
  if value and (ARGV[4] == "nothing" or value ~= ARGV[5]) then return {"found", value} end
  if not value and ARGV[4] == "this" then return {"none"} end
end
if seq > 0 then redis.call("HSET", KEYS[1], "seq", ARGV[9]) end
if ARGV[6] == "delete" then
  redis.call("DEL", KEYS[2])
elseif ARGV[8] == "0" then
  redis.call("SET", KEYS[2], ARGV[7])
else
  redis.call("SET", KEYS[2], ARGV[7], "PX", ARGV[8])
end
return {"written"}
