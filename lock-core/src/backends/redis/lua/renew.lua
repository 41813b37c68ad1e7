#!lua flags=allow-oom
-- Renews leases, each to its full ttl. Never creates one.
--
-- KEYS[1] first lease, and one key more for every further lease
-- ARGV[1] how long an ended lease is remembered, in ms
-- ARGV[2] holder of the first lease
-- ARGV[3] token of the first lease
-- ARGV[4] ttl of the first lease in ms, and three arguments more for every further lease
--
-- Returns one word per lease, in order: "renewed" | "not_holder" | "broken"
--
-- Idempotent, and inert for a lease that has ended. Atomic per lease; a key of a wrong type does
-- not keep the others from being renewed. A lease is kept 1 ms longer than told, as by acquire.

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local linger_ms = ARGV[1]

local function renew(key, holder, token, ttl_ms)
  local lease = redis.pcall("GET", key)
  if type(lease) == "table" then return "broken" end
  if not lease then return "not_holder" end
  local its_token, its_holder, attempts, expires = lease:match("^(%d+):(%x+):([%x,]+):(%d+)$")
  if its_token ~= token or its_holder ~= holder or expires - now_ms <= 0 then
    return "not_holder"
  end
  local kept_ms = ttl_ms + 1
  local renewed = string.format("%s:%s:%s:%.0f", token, holder, attempts, now_ms + kept_ms)
  redis.call("SET", key, renewed, "PX", string.format("%.0f", kept_ms + linger_ms))
  return "renewed"
end

local words = {}
for i = 1, #KEYS do
  words[i] = renew(KEYS[i], ARGV[3 * i - 1], ARGV[3 * i], ARGV[3 * i + 1])
end
return words
