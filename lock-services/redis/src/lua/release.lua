#!lua flags=allow-oom
-- Tries fast_release.lua, hand_over.lua. Begins with shared.lua, tokens.lua, queue.lua.
--
-- Ends a lease of this holder and token, or gives one of its holds back, and hands the resource on.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- KEYS[3] line of waiters
-- KEYS[4] what is suspended
-- KEYS[5] details of the waiters
-- KEYS[6] tombstone: of this holder, or of the attempt whose hold is given back
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] token
-- ARGV[3] holder
-- ARGV[4] attempt whose hold is given back; left out for all of them
--
-- Returns "released" | "raised": released, and the counter was lifted as ARGV[1] says
--       | "more": released, run it again | "not_holder"
--
-- Idempotent: while the tombstone stays, a release that is sent again is released again.

-- The resource is handed on, if there is no lease.
local function released()
  if not lease and hand_on() == "more" then return "more" end
  return "released"
end

local function release()
  look()
  local token, holder, attempt = ARGV[2], ARGV[3], ARGV[4]
  -- Tokens, because attempts that were acquired together have one tombstone.
  local tombstone = redis.call("GET", KEYS[6]) or ""

  local ours = lease and lease.holder == holder and lease.token == token and lease.left > 0
  if ours and attempt and not lease.attempts:find(attempt, 1, true) then
    ours = has_all(lease.attempts)
  end
  if not ours then
    if ("," .. tombstone .. ","):find("," .. token .. ",", 1, true) then return released() end
    return "not_holder"
  end

  redis.call("SET", KEYS[6], tombstone .. "," .. token, "PX", ENDED_TEXT)
  local others = attempt and without_attempt(lease.attempts, attempt)
  if others then
    lease.attempts = others
    save(KEYS[2], lease)
    return "released"
  end
  redis.call("DEL", KEYS[2])
  if lease.state == "p" then leave(holder) end
  lease = nil
  return released()
end
