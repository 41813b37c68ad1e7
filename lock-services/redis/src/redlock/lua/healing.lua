-- Whether this node is being healed, in a given life: what scripts look at that give it counters.

-- True, or nil and the answer that says what the node is instead.
local function healing(marker, life)
  marker = marker or ""
  if marker:sub(1, #life + 3) == life .. ":h:" then return true end
  return nil, {"other", marker}
end
