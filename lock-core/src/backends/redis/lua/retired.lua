-- A shard that was taken out of service. For scripts that begin with tokens.lua and whose
--   KEYS[2]  counts the requests to retire or reinstate the shard that it has followed
--
-- Then "retired:LAST" stands in the place of its counter. No command counts that up, so every way
-- to a token ends there, the short ways and those of older clients too, and none looks for it.

-- The last token of a shard that is retired.
local function retired_at()
  local stored = redis.pcall("GET", KEYS[1])
  return type(stored) == "string" and stored:match("^retired:(%d+)$") or nil
end

-- How often the shard has been told whether it serves, though it may have been so before. A request
-- goes with that number: one that comes late, behind another, finds a greater one.
local function told() return redis.call("GET", KEYS[2]) or "0" end
