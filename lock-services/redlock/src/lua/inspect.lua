#!lua flags=no-writes
-- Begins with serving.lua, lease.lua.
--
-- Looks at the lease of this node. Changes nothing.
--
-- KEYS[1] marker of the node
-- KEYS[2] lease of the resource
--
-- Returns {"held", holder, token, left_ms, metadata} | {"free"}
--       | {"no_state"} | {"not_serving", marker}

local found = redis.call("MGET", KEYS[1], KEYS[2])
local incarnation, wrong = serving(found[1])
if not incarnation then return wrong end
local lease = load(KEYS[2], found[2])
if not lease or not lease.raised or lease.left <= 0 then return {"free"} end
return {"held", lease.holder, lease.token, text(lease.left), lease.metadata}
