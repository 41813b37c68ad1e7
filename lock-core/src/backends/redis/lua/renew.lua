#!lua flags=allow-oom
-- Begins with shared.lua.
--
-- Renews leases, each to its full ttl. Never creates one, and never makes one shorter.
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

local function renew(key, holder, token, ttl)
  local lease, foreign = load(key)
  if foreign then return "broken" end
  if not lease or lease.token ~= token or lease.holder ~= holder or lease.left <= 0 then
    return "not_holder"
  end
  if lease.state == "p" then return "provisional" end
  extend(lease, ttl)
  save(key, lease)
  return "renewed"
end

local words = {}
for i = 1, #KEYS do
  words[i] = renew(KEYS[i], ARGV[3 * i - 2], ARGV[3 * i - 1], ARGV[3 * i])
end
return words
