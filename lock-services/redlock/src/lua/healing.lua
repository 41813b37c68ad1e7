-- Whether this node is being healed, in a given incarnation. For scripts that give it counters.

-- True, or nil and the answer with the marker of the node.
local function healing(marker, incarnation)
  marker = marker or ""
  if marker:sub(1, #incarnation + 3) == incarnation .. ":h:" then return true end
  return nil, {"other", marker}
end
