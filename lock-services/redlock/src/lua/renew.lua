#!lua flags=allow-oom
-- Begins with serving.lua, lease.lua.
--
-- Renews leases, each to its full ttl. Never creates a lease, and never makes a lease shorter than
-- was promised. A lease that is longer than the longest promise comes from a clock that was set
-- back. No holder relies on the excess, so the excess is removed.
--
-- KEYS[1] marker of the node
-- KEYS[2] first lease, and one key more for every further lease
-- ARGV[1] ttl of the first lease in ms, and three arguments more for every further lease
-- ARGV[2] its drift in ms
-- ARGV[3] "holder:token" of it, more for every further
--
-- Returns {"renewed", letters}: for each lease, in order, r for renewed, n for not the holder, or
--         l for longer than any lease may be: a node that is healed waits for no longer
--       | {"no_state"} | {"not_serving", marker}
--
-- Idempotent. Changes nothing for a lease that has ended or was never raised. Atomic for each
-- lease.

local incarnation, base, longest = serving(redis.call("GET", KEYS[1]))
if not incarnation then
  local wrong = base
  return wrong
end

-- The longest ttl that has this drift. A drift is a hundredth of the ttl and 2 ms more.
local function longest_of(drift) return (drift - 2) * 100 + 99 end

local function renew_one(key, ttl, drift, whose)
  local lease, letter = load(key, redis.call("GET", key)), "n"
  local is_theirs = lease and lease.raised and lease.left > 0
    and lease.holder .. ":" .. lease.token == whose
  if is_theirs then letter = tonumber(ttl) > tonumber(longest) and "l" or "r" end
  if letter == "r" then
    local widest = math.max(drift, lease.drift)
    local left = math.max(ttl, math.min(lease.left, longest_of(widest)))
    lease.drift = text(widest)
    redis.call("SET", key, pack(lease), "PX", text(left + widest + ENDED_MS))
  end
  return letter
end

local letters = {}
for i = 2, #KEYS do
  local at = 3 * (i - 2)
  letters[#letters + 1] = renew_one(KEYS[i], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
return {"renewed", table.concat(letters)}
