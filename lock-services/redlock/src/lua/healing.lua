-- Whether this node is being healed, in a given incarnation: what scripts look at that give it
-- counters.

-- True, or nil and the answer that says what the node is instead.
local function healing(marker, incarnation)
  marker = marker or ""
  if marker:sub(1, #incarnation + 3) == incarnation .. ":h:" then return true end
  return nil, {"other", marker}
end
