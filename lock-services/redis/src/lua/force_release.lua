#!lua flags=allow-oom
-- Begins with lease.lua, keys.lua, shared.lua, keep.lua, tokens.lua, queue.lua.
--
-- Ends the lease with this token, of any holder, and hands the resource on. First draws a token
-- that no holder gets. A store that has this token as its mark refuses the former holder.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] token
--
-- Returns {"ended", revocation} | {"not_held"} | {"missing"} | {"exhausted"}
--       | {"broken_counter", why} | {"implausible", greatest} | {"broken_lease"}
--
-- Idempotent: while the key of the release by force exists, a repeated request returns the same
-- revocation token. If more than MOVES waiters are out of reach, the next request goes on.

local function force_release()
  look()
  if foreign then return {"broken_lease"} end
  if not lease or lease.token ~= ARGV[2] or lease.left <= 0 then
    local forced = redis.call("GET", forced) or ""
    local revocation = forced:match("^" .. ARGV[2] .. ":(%d+)$")
    if revocation then return {"ended", revocation} end
    return {"not_held"}
  end

  local counter, wrong = counter_before("", 1, false)
  if not counter then return wrong end
  local revocation = draw(counter, 1)
  redis.call("SET", forced, lease.token .. ":" .. revocation, "PX", ENDED_TEXT)
  bury(suspended, details, "=" .. lease.holder)
  if lease.state == "p" then leave(lease.holder) end
  lease = nil
  hand_on()
  finish()
  return {"ended", revocation}
end
