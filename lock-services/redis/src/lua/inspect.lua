#!lua flags=no-writes
-- Begins with lease.lua, keys.lua, shared.lua.
--
-- Looks at a resource. Changes nothing. The time left is the time that the holder counts.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
--
-- Returns {"held", waiters, token, holder, left_ms, metadata} | {"free", waiters} | {"broken"}

local function inspect()
  local lease, foreign = load(KEYS[2])
  if foreign then return {"broken"} end
  local _, _, details = keys_beside(KEYS[2])
  local live = lease and lease.left > 0
  -- The hash also has the last ticket, and a waiter that has not confirmed its grant.
  local waiters = redis.call("HLEN", details) - 1
  if live and lease.state == "p" then waiters = waiters - 1 end
  waiters = text(math.max(waiters, 0))
  if not live then return {"free", waiters} end
  return {"held", waiters, lease.token, lease.holder, text(lease.left - 1), lease.metadata}
end
