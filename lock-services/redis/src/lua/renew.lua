#!lua flags=allow-oom
-- Begins with shared.lua.
--
-- Renews leases, each to its full ttl. Never creates one, and never makes one shorter than it was
-- promised to be.
--
-- KEYS[1] first lease, and one key more for every further lease
-- ARGV[1] ttl in ms
-- ARGV[2] what the first lease begins with, "token:holder:", and one more for every further
--
-- Returns one text with a letter per lease, in order: "r" renewed | "n" it is not the holder
--       | "b" the key holds something else
--
-- Idempotent, and inert for a lease that has ended, and for a provisional one, of which nobody has
-- been told before it is confirmed. Atomic per lease; a key of a wrong type does not keep the
-- others from being renewed.

-- What a plain lease goes on with, and how long its key stays.
local rest, stay

-- Most leases are full, always renewed to the same length, and of one attempt, which has 16 digits:
-- they need nothing but another time to live. To compare the text is faster than to load the lease.
local function is_plain(key, ours)
  local packed, plain = redis.pcall("GET", key), ours .. rest
  return type(packed) == "string" and packed:sub(1, #plain) == plain
    and packed:sub(#plain + 17, #plain + 17) == ":"
end

local function renew_one(key, ours)
  if is_plain(key, ours) then
    if redis.call("PTTL", key) <= ENDED_MS then return "n" end
    redis.call("PEXPIRE", key, stay)
    return "r"
  end
  local lease, foreign = load(key)
  if foreign then return "b" end
  if not lease or lease.token .. ":" .. lease.holder .. ":" ~= ours or lease.left <= 0 then
    return "n"
  end
  if lease.state == "p" then return "n" end
  extend(key, lease, ARGV[1])
  return "r"
end

local function renew()
  rest, stay = "f:" .. ARGV[1] .. ":", text(ARGV[1] + 1 + ENDED_MS)
  local letters = {}
  for i = 1, #KEYS do
    letters[i] = renew_one(KEYS[i], ARGV[i + 1])
  end
  return table.concat(letters)
end
