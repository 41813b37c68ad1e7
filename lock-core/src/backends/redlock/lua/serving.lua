-- What every script of a lease looks at first: whether this node serves, and in which life. For
-- scripts whose
--   KEYS[1]  is the marker of the node
--
-- Returns {"no_state"} | {"not_serving", marker}

local marker = redis.call("GET", KEYS[1])
if not marker then return {"no_state"} end
-- life:state:base:longest:run_id; "s" serves, "h" serves what has been healed.
local life, state, base, longest = marker:match("^([^:]+):([sh]):(%d+):(%d+):")
if not life then return {"not_serving", marker} end
