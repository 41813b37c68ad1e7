#!lua flags=allow-oom
-- Begins with lease.lua, shared.lua.
--
-- Renews leases, each to its full ttl. Never creates one, and never makes one shorter than it was
-- promised to be.
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
-- Idempotent, and inert for a lease that has ended, and for a provisional one, which no client
-- relies on before it is confirmed. Atomic per lease; a key of a wrong type does not keep the
-- others from being renewed.

-- How long the key of a lease stays.
local stay

-- Most leases are full and always renewed to the same length: they need another time to live, and
-- nothing else. To compare the text is faster than to load the lease.
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
