-- Grants a lease, or says who stands in the way.
--
-- KEYS[1] lease of the resource: "token:holder:attempt:expires_ms"
-- KEYS[2] token counter of the shard
-- KEYS[3] mark of an ended acquisition: this holder
-- KEYS[4] mark of an ended attempt: this holder and attempt
-- ARGV[1] holder, 32 hex digits
-- ARGV[2] attempt, 16 hex digits
-- ARGV[3] ttl in ms
-- ARGV[4] floor: least token that is of use, or ""
-- ARGV[5] origin: where counters start, "clock" or a token
-- ARGV[6] start: "1" if a missing counter may start now
-- ARGV[7] raise: "1" lifts the counter to the clock first
-- ARGV[8] max lead: how far a floor may lie above the clock, or above the counter, in tokens
-- ARGV[9] greatest token there is
--
-- Returns {"granted", token, left_ms} | {"held", left_ms} | {"ended"} | {"missing"}
--       | {"implausible", greatest} | {"exhausted"} | {"broken", why}
--
-- Idempotent: sent again by the holder of a living lease it returns the same token and the time
-- left. Atomic, but an error does not roll back: INCR comes before SET, so that an error leaves
-- at most an unused token. Tokens have 15 digits at most, which a double holds exactly. Time is
-- read in whole ms, so the server keeps a lease 1 ms longer than it tells.

local function text(number) return string.format("%.0f", number) end

if redis.call("EXISTS", KEYS[3], KEYS[4]) > 0 then return {"ended"} end

local time = redis.call("TIME")
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
local clock = time[1] * 100000 + math.floor(time[2] / 10)

local lease = redis.pcall("GET", KEYS[1])
if type(lease) == "table" then return {"broken", "the key of the lease holds something else"} end
if lease then
  local token, holder, attempt, expires = lease:match("^(%d+):(%x+):(%x+):(%d+)$")
  if not token then return {"broken", "the lease is not one of this version"} end
  local left = expires - now_ms
  if left > 0 and holder == ARGV[1] then
    if attempt ~= ARGV[2] then
      local told = token .. ":" .. holder .. ":" .. ARGV[2] .. ":" .. expires
      redis.call("SET", KEYS[1], told, "KEEPTTL")
    end
    return {"granted", token, text(left - 1)}
  end
  if left > 0 then return {"held", text(left)} end
  if holder == ARGV[1] then return {"ended"} end
end

local stored = redis.pcall("GET", KEYS[2])
if type(stored) == "table" then return {"broken", "the key of the counter holds something else"} end
if stored and (#stored > 15 or not stored:match("^%d+$")) then
  return {"broken", "the counter is not a whole number of at most 15 digits"}
end
if stored and redis.call("PTTL", KEYS[2]) ~= -1 then
  return {"broken", "the counter has a time to live and would be lost"}
end
if not stored and ARGV[6] ~= "1" then return {"missing"} end

local from_clock = ARGV[5] == "clock"
local counter = tonumber(stored) or (from_clock and clock or tonumber(ARGV[5])) - 1
local least = counter
if ARGV[7] == "1" and clock > least then least = clock end
if ARGV[4] ~= "" then
  local floor = tonumber(ARGV[4])
  local greatest = math.min((from_clock and clock or counter) + ARGV[8], tonumber(ARGV[9]))
  if floor > greatest then return {"implausible", text(greatest)} end
  if floor - 1 > least then least = floor - 1 end
end
if least >= tonumber(ARGV[9]) then return {"exhausted"} end

if not stored or least > counter then redis.call("SET", KEYS[2], text(least)) end
local token = text(redis.call("INCR", KEYS[2]))
local kept_ms = ARGV[3] + 1
local granted = token .. ":" .. ARGV[1] .. ":" .. ARGV[2] .. ":" .. text(now_ms + kept_ms)
redis.call("SET", KEYS[1], granted, "PX", kept_ms)
return {"granted", token, ARGV[3]}
