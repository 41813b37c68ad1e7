-- The other keys of a resource. They are named after the two that scripts are given, because each
-- key that is given costs the server as much as a command, and the fast paths need two. All keys of
-- a shard have one hash tag, so they are in the slot of the two.

local base = KEYS[1]:sub(1, -#"counter" - 1)

-- The queue of waiters, the suspended waiters and tombstones, the details of the waiters, and what
-- was ended by force, for the resource whose lease has this key.
local function keys_beside(lease)
  local name = lease:sub(#base + #"lease:" + 1)
  return base .. "queue:" .. name, base .. "suspended:" .. name, base .. "waiters:" .. name,
    base .. "forced:" .. name
end
