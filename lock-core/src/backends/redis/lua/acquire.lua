#!lua
-- Grants a lease, or says who stands in the way.
--
-- KEYS[1] lease of the resource: "token:holder:attempts:expires_ms", attempts joined by ","
-- KEYS[2] token counter of the shard
-- KEYS[3] tombstone of this holder: the acquisition was released
-- KEYS[4] tombstone of this holder and attempt: the attempt was cancelled
-- ARGV[1] holder, a digest of 32 hex digits
-- ARGV[2] attempt, 16 hex digits
-- ARGV[3] ttl in ms
-- ARGV[4] floor: least token that is of use, or ""
-- ARGV[5] origin: where counters start, "clock" or a token
-- ARGV[6] start: "1" if a missing counter may start now
-- ARGV[7] raise: "1" lifts the counter to the clock first
-- ARGV[8] max lead: how far a floor may lie above the clock, or above the counter, in tokens
-- ARGV[9] greatest token there is
-- ARGV[10] how long an ended lease is remembered, in ms
--
-- Returns {"granted", token, left_ms} | {"held", left_ms} | {"ended"} | {"missing"}
--       | {"implausible", greatest} | {"exhausted"} | {"broken_counter", why} | {"broken_lease"}
--
-- Idempotent: sent again by the holder of a living lease it returns the same token and the time
-- left. Atomic, but an error does not roll back: INCR comes before SET, so that an error leaves
-- at most an unused token. Tokens have 15 digits at most, which a double holds exactly. Time is
-- read in whole ms, so the server keeps a lease 1 ms longer than it tells. The key stays for a
-- while after the lease has ended, so that a late request of its holder is not taken for a new one.

local ATTEMPTS_MAX = 16

local function text(number) return string.format("%.0f", number) end

-- Every attempt that is told of the lease is kept, because a cancel ends the lease only if no other
-- attempt relies on it.
local function with_attempt(attempts, attempt)
  if ("," .. attempts .. ","):find("," .. attempt .. ",", 1, true) then return attempts end
  return (attempts .. "," .. attempt):sub(-(ATTEMPTS_MAX * 17 - 1))
end

if redis.call("EXISTS", KEYS[3], KEYS[4]) > 0 then return {"ended"} end

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local clock = time[1] * 100000 + math.floor(time[2] / 10)

local lease = redis.pcall("GET", KEYS[1])
if type(lease) == "table" then return {"broken_lease"} end
if lease then
  local token, holder, attempts, expires = lease:match("^(%d+):(%x+):([%x,]+):(%d+)$")
  if not token then return {"broken_lease"} end
  local left = expires - now_ms
  if holder == ARGV[1] then
    if left <= 0 then return {"ended"} end
    local told = token .. ":" .. holder .. ":" .. with_attempt(attempts, ARGV[2]) .. ":" .. expires
    if told ~= lease then redis.call("SET", KEYS[1], told, "KEEPTTL") end
    return {"granted", token, text(left - 1)}
  end
  if left > 0 then return {"held", text(left)} end
end

local stored = redis.pcall("GET", KEYS[2])
if type(stored) == "table" then return {"broken_counter", "its key holds something else"} end
if stored and (#stored > 15 or not stored:match("^%d+$")) then
  return {"broken_counter", "it is not a whole number of at most 15 digits"}
end
if stored and redis.call("PTTL", KEYS[2]) ~= -1 then
  return {"broken_counter", "it has a time to live and would be lost"}
end
if not stored and ARGV[6] ~= "1" then return {"missing"} end

local from_clock = ARGV[5] == "clock"
local counter = tonumber(stored) or (from_clock and clock or tonumber(ARGV[5])) - 1
local least = counter
if ARGV[7] == "1" and clock > least then least = clock end
local floor = tonumber(ARGV[4])
if floor and floor - 1 > least then
  local greatest = math.min((from_clock and clock or counter) + ARGV[8], tonumber(ARGV[9]))
  if floor > greatest then return {"implausible", text(greatest)} end
  least = floor - 1
end
if least >= tonumber(ARGV[9]) then return {"exhausted"} end

if not stored or least > counter then redis.call("SET", KEYS[2], text(least)) end
local token = text(redis.call("INCR", KEYS[2]))
local kept_ms = ARGV[3] + 1
local granted = token .. ":" .. ARGV[1] .. ":" .. ARGV[2] .. ":" .. text(now_ms + kept_ms)
redis.call("SET", KEYS[1], granted, "PX", text(kept_ms + ARGV[10]))
return {"granted", token, ARGV[3]}
