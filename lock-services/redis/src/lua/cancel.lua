#!lua flags=allow-oom
-- Begins with lease.lua, shared.lua, tokens.lua, queue.lua.
--
-- Ends one attempt to acquire: a late request of it is refused, and its place in the queue or its
-- lease is given up, unless another attempt of the same holder relies on it.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- KEYS[3] queue of waiters
-- KEYS[4] suspended waiters, and tombstones
-- KEYS[5] details of the waiters
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] holder
-- ARGV[3] attempt
-- ARGV[4] token of a pushed grant that found no attempt, if only that is given up; left out to
--         give up all that the attempt has
--
-- Returns "cancelled" | "more": cancelled, run it again
--
-- Idempotent.

-- Whether a push that found no attempt needs no answer. Nothing is left of its grant, or an answer
-- had the same grant before: then the lease was confirmed, or ran out and was granted again.
local function is_settled(holder, token)
  if not lease or lease.holder ~= holder or lease.left <= 0 then return not waiter(holder) end
  return lease.state == "f" or lease.token ~= token
end

local function cancel()
  look()
  local holder, attempt = ARGV[2], ARGV[3]

  if ARGV[4] and is_settled(holder, ARGV[4]) then return "cancelled" end
  bury(KEYS[4], KEYS[5], "/" .. attempt)
  if foreign then return "cancelled" end
  settle_what_is_over()
  drop_from_queue(holder, attempt)
  if lease and lease.holder == holder and lease.left > 0 then
    lease.attempts = without_attempt(lease.attempts, attempt)
    if lease.attempts then
      save(KEYS[2], lease)
    else
      redis.call("DEL", KEYS[2])
      lease = nil
    end
  end
  if not lease and hand_on() == "more" then return "more" end
  return "cancelled"
end
