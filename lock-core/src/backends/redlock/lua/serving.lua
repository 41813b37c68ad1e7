-- Whether this node serves, and in which life: what every script looks at before anything else.

-- The life, the state, the base and the longest time to live that a marker tells, or nil and the
-- answer that says that the node does not serve. It is life:state:base:longest:run_id[+]; "s"
-- serves and has no gaps, "h" serves what has been healed.
local function serving(marker)
  if not marker then return nil, {"no_state"} end
  local life, state, base, longest = marker:match("^([^:]+):([sh]):(%d+):(%d+):")
  if not life then return nil, {"not_serving", marker} end
  return life, state, base, longest
end
