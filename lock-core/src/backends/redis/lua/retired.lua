-- A shard that was taken out of service. For scripts that begin with tokens.lua.
--
-- Then "retired:LAST" stands in the place of its counter. No command counts that up, so every way
-- to a token ends there, the short ways and those of older clients too, and none looks for it.

-- The last token of a shard that is retired.
local function retired_at()
  local stored = redis.pcall("GET", KEYS[1])
  return type(stored) == "string" and stored:match("^retired:(%d+)$") or nil
end
