-- The other keys of a resource. Their names are derived from the two keys that scripts get, because
-- each key that is passed costs the server as much as a command, and the fast paths need only two.
-- All keys of a shard have one hash tag, so all of them are in one slot.

local base = KEYS[1]:sub(1, -#"counter" - 1)

-- The queue of waiters, the suspended waiters and tombstones, the details of the waiters, and the
-- last release by force, for the resource whose lease has this key.
local function keys_beside(lease)
  local name = lease:sub(#base + #"lease:" + 1)
  return base .. "queue:" .. name, base .. "suspended:" .. name, base .. "waiters:" .. name,
    base .. "forced:" .. name
end
