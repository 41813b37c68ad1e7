#!lua flags=allow-oom
-- Begins with lease.lua, shared.lua.
--
-- Writes a full lease again as it is. A client that waits for replicas next on the same connection
-- waits for this write, and so for the grant before it.
--
-- KEYS[1] lease of the resource
-- ARGV[1] holder
-- ARGV[2] token
--
-- Returns {"written"} | {"not_holder"}
--
-- Idempotent, and changes nothing.

local function rewrite()
  local lease = load(KEYS[1])
  if not lease or lease.holder ~= ARGV[1] or lease.token ~= ARGV[2] or lease.left <= 0
    or lease.state == "p" then
    return {"not_holder"}
  end
  write(KEYS[1], lease)
  return {"written"}
end
