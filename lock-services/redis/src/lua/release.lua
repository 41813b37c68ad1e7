#!lua flags=allow-oom
-- Tries fast_release.lua, fast_hand_over.lua.
-- Begins with lease.lua, keys.lua, shared.lua, keep.lua, tokens.lua, queue.lua.
--
-- Ends a lease of this holder and token, or gives back one of its holds, and hands the resource on.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] what the lease begins with if it is full: "token:holder:f:"
-- ARGV[3] client that asks, if waiters of it may be handed the resource by the answer, or ""
-- ARGV[4] what gets a tombstone: the attempt whose hold is given back, "" for the acquisition; left
--         out if every request of the acquisition was answered, so that none can come later
-- A missing argument is "", or left out if none comes after it.
--
-- Returns "released" | "raised": released, and the counter was lifted as ARGV[1] says
--       | {"released"} | {"raised"} | {"released" or "raised", grant}: handed in full to a waiter
--         of the client, with the text of a push
--       | "more": released, run it again | "not_holder"
--
-- Idempotent with a tombstone: while the tombstone exists, a release that is sent again gets the
-- same answer.

-- The answer to a release. The resource is handed on if there is no lease.
local function released()
  if not lease and hand_on() == "more" then return "more" end
  return "released"
end

local function end_hold()
  local token, holder = grant_of(ARGV[2])
  local attempt = ARGV[4]
  local is_hold = attempt and attempt ~= ""
  -- The receipt has the token, because a holder may have had several leases.
  local receipt = "+" .. (is_hold and attempt or holder) .. ":" .. token

  local ours = lease and lease.holder == holder and lease.token == token and lease.left > 0
  if ours and is_hold and not lease.attempts:find(attempt, 1, true) then
    ours = has_all(lease.attempts)
  end
  if not ours then
    if redis.call("ZSCORE", suspended, receipt) then return released() end
    return "not_holder"
  end

  if attempt then
    bury(suspended, details, receipt, is_hold and "/" .. attempt or "=" .. holder)
  end
  local others = is_hold and without_attempt(lease.attempts, attempt)
  if others then
    lease.attempts, lease.changed = others, true
    return "released"
  end
  if lease.state == "p" then leave(holder) end
  lease = nil
  return released()
end

local function release()
  look()
  if foreign then return "not_holder" end
  local answer = end_hold()
  finish()
  return answer
end
