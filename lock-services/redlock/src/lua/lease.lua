-- The lease as a text: holder:nonce:token:count:drift:attempts:metadata. The nonce is the nonce of
-- a try. The token is 0 until the lease was raised. The drift is the time in ms for which the node
-- grants no other lease after the end of this one.

local function text(number) return string.format("%d", number) end

-- A lease as it was found, or nil. `left` is the time for which the holder relies on the lease, and
-- `blocked` is the time after which another holder may be granted.
local function load(key, packed)
  if not packed then return nil end
  local holder, nonce, token, count, drift, attempts, metadata =
    packed:match("^(%x+):(%x+):(%d+):(%d+):(%d+):([%x,]+):(.*)$")
  local blocked = redis.call("PTTL", key) - ENDED_MS
  return {holder = holder, nonce = nonce, token = token, count = count, drift = drift,
    attempts = attempts, metadata = metadata, raised = token ~= "0", left = blocked - drift,
    blocked = blocked}
end

local function pack(lease)
  return lease.holder .. ":" .. lease.nonce .. ":" .. lease.token .. ":" .. lease.count .. ":"
    .. lease.drift .. ":" .. lease.attempts .. ":" .. lease.metadata
end

-- Adds a word to the ended attempts of a holder: "=token" for a release, "~" for a lease that ran
-- out, the name of an attempt that was cancelled, the nonce of a try that was undone. The newest 64
-- are kept.
local function remember(key, word)
  local words = redis.call("GET", key)
  words = words and word .. "," .. words or word
  if #words > 64 * 17 then words = words:sub(1, 64 * 17):match("^(.*),") end
  redis.call("SET", key, words, "PX", ENDED_TEXT)
end

-- Removes an attempt from a lease, and ends the lease if no other attempt relies on it.
local function leave(key, lease, attempt)
  local others = {}
  for other in lease.attempts:gmatch("%x+") do
    if other ~= attempt then others[#others + 1] = other end
  end
  if #others == 0 then
    redis.call("DEL", key)
  else
    lease.attempts = table.concat(others, ",")
    redis.call("SET", key, pack(lease), "KEEPTTL")
  end
end
