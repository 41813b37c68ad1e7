#!lua flags=allow-oom
-- Begins with lease.lua, keys.lua, shared.lua, keep.lua, tokens.lua, queue.lua.
--
-- Ends one attempt to acquire: its late requests are refused, and its place in the queue or its
-- lease is given up, unless another attempt of the same holder relies on the place or the lease.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] holder
-- ARGV[3] attempt
-- ARGV[4] token of a grant that found no attempt, if only that is given up; left out to
--         give up all that the attempt has
--
-- Returns "cancelled" | "more": cancelled, run it again
--
-- Idempotent.

-- Whether a grant that found no attempt needs no cancel: nothing is left of the grant, or an answer
-- to a request of the attempt had the same grant. In the second case the lease was confirmed, or it
-- ran out and was granted again.
local function is_settled(holder, token)
  if not lease or lease.holder ~= holder or lease.left <= 0 then return not waiter(holder) end
  return lease.state ~= "p" and lease.state ~= "h" or lease.token ~= token
end

local function cancel()
  look()
  local holder, attempt = ARGV[2], ARGV[3]

  if ARGV[4] and is_settled(holder, ARGV[4]) then return "cancelled" end
  bury(suspended, details, "/" .. attempt)
  if foreign then return "cancelled" end
  settle_what_is_over()
  drop_from_queue(holder, attempt)
  if lease and lease.holder == holder and lease.left > 0 then
    lease.attempts, lease.changed = without_attempt(lease.attempts, attempt), true
    if not lease.attempts then lease = nil end
  end
  local outcome = not lease and hand_on()
  finish()
  if outcome == "more" then return "more" end
  return "cancelled"
end
