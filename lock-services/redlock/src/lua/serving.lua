-- Whether this node serves, and in which incarnation: what every script for locks looks at first.

-- The incarnation, the base and the longest time to live that a marker tells, or nil and the answer
-- that says that the node does not serve. It is incarnation:state:base:longest:run_id[+]; "s"
-- serves.
local function serving(marker)
  if not marker then return nil, {"no_state"} end
  local incarnation, base, longest = marker:match("^([^:]+):s:(%d+):(%d+):")
  if not incarnation then return nil, {"not_serving", marker} end
  return incarnation, base, longest
end
