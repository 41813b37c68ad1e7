#!lua flags=no-writes
-- Begins with lease.lua, shared.lua.
--
-- Looks at a resource. Changes nothing. The time left is that which the holder counts.
--
-- KEYS[1] lease of the resource
-- KEYS[2] details of the waiters
--
-- Returns {"held", waiters, token, holder, left_ms, metadata} | {"free", waiters} | {"broken"}

local function inspect()
  local lease, foreign = load(KEYS[1])
  if foreign then return {"broken"} end
  local live = lease and lease.left > 0
  -- The last ticket is in there, too, and a waiter that has not confirmed its grant.
  local waiters = redis.call("HLEN", KEYS[2]) - 1
  if live and lease.state == "p" then waiters = waiters - 1 end
  waiters = text(math.max(waiters, 0))
  if not live then return {"free", waiters} end
  return {"held", waiters, lease.token, lease.holder, text(lease.left - 1), lease.metadata}
end
