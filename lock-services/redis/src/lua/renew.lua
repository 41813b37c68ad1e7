#!lua flags=allow-oom
-- Begins with lease.lua, shared.lua.
--
-- Renews leases, each to its full ttl. Never creates a lease, and never makes a lease shorter than
-- was promised.
--
-- KEYS[1] first lease, and one key more for every further lease
-- ARGV[1] ttl in ms
-- ARGV[2] "token:holder:f:ttl:", the beginning of the first lease if it is full and was never
--         longer
-- ARGV[3] one more for every further lease
--
-- Returns one text with a letter per lease, in order: "r" renewed | "n" it is not the holder
--       | "b" the key holds something else
--
-- Idempotent. Changes nothing for a lease that has ended, nor for a provisional lease, on which no
-- client relies before it is confirmed. Atomic for each lease. A key of a wrong type does not keep
-- the other leases from being renewed.

-- The time to live of the key of a lease.
local stay

-- Most leases are full and are always renewed to the same length. They need only a new time to
-- live. A comparison of the text is faster than loading the lease.
local function is_plain(key, plain)
  local packed = redis.pcall("GET", key)
  return type(packed) == "string" and packed:sub(1, #plain) == plain
end

local function renew_one(key, plain)
  if is_plain(key, plain) then
    if redis.call("PTTL", key) <= ENDED_MS then return "n" end
    redis.call("PEXPIRE", key, stay)
    return "r"
  end
  local lease, foreign = load(key)
  if foreign then return "b" end
  local token, holder = grant_of(plain)
  if not lease or lease.token ~= token or lease.holder ~= holder or lease.left <= 0 then
    return "n"
  end
  if lease.state == "p" then return "n" end
  extend(lease, ARGV[1])
  write(key, lease)
  return "r"
end

local function renew()
  stay = text(ARGV[1] + 1 + ENDED_MS)
  local letters = {}
  for i = 1, #KEYS do
    letters[i] = renew_one(KEYS[i], ARGV[i + 1])
  end
  return table.concat(letters)
end
