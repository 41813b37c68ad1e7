-- The fast path of a release without waiters, of a full lease that needs no tombstone. For
-- release.lua, whose keys and arguments it reads. It answers nothing to a caller that has to go
-- another way.

-- The text in the key of the lease, or nothing. Nothing if the release leaves a tombstone, too.
local held

local function fast_release()
  held = not ARGV[4] and redis.pcall("GET", KEYS[2])
  local ours = ARGV[2]
  if type(held) ~= "string" or held:sub(1, #ours) ~= ours then return nil end
  if redis.call("PTTL", KEYS[2]) <= ENDED_MS then return nil end
  redis.call("DEL", KEYS[2])
  return "released"
end
