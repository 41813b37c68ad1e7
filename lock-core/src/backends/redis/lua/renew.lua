#!lua flags=allow-oom
-- Begins with shared.lua.
--
-- Renews leases, each to its full ttl. Never creates one, and never makes one shorter that several
-- attempts rely on.
--
-- KEYS[1] first lease, and one key more for every further lease
-- ARGV[1] holder of the first lease
-- ARGV[2] token of the first lease
-- ARGV[3] ttl of the first lease in ms, and three arguments more for every further lease
--
-- Returns one word per lease, in order: "renewed" | "not_holder" | "provisional" | "broken"
--
-- Idempotent, and inert for a lease that has ended, and for a provisional one, which has to be
-- confirmed. Atomic per lease; a key of a wrong type does not keep the others from being renewed.

-- What a key has to live, by ttl.
local stays = {}

-- Most leases are full, without a delay, of one token and one attempt, which has 16 digits: they
-- need nothing but a longer time to live.
local function is_plain(key, holder, token)
  local packed, plain = redis.pcall("GET", key), token .. ":" .. holder .. ":f:0:1:"
  return type(packed) == "string" and packed:sub(1, #plain) == plain
    and packed:sub(#plain + 17, #plain + 17) == ":"
end

local function renew(key, holder, token, ttl)
  if is_plain(key, holder, token) then
    if redis.call("PTTL", key) <= ENDED_MS then return "not_holder" end
    stays[ttl] = stays[ttl] or text(ttl + 1 + ENDED_MS)
    redis.call("PEXPIRE", key, stays[ttl])
    return "renewed"
  end
  local lease, foreign = load(key)
  if foreign then return "broken" end
  if not lease or lease.token ~= token or lease.holder ~= holder or lease.left <= 0 then
    return "not_holder"
  end
  if lease.state == "p" then return "provisional" end
  extend(key, lease, ttl)
  return "renewed"
end

local words = {}
for i = 1, #KEYS do
  words[i] = renew(KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i])
end
return words
