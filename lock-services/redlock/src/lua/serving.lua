-- Whether this node serves, and in which incarnation. Every script for locks checks this first.

-- The incarnation, the base and the longest ttl in a marker, or nil and the answer that the node
-- does not serve. A marker is incarnation:state:base:longest:run_id[+]. The state "s" means that
-- the node serves.
local function serving(marker)
  if not marker then return nil, {"no_state"} end
  local incarnation, base, longest = marker:match("^([^:]+):s:(%d+):(%d+):")
  if not incarnation then return nil, {"not_serving", marker} end
  return incarnation, base, longest
end
