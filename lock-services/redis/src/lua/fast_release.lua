-- The fast path of a release of a full lease that needs no tombstone and has no waiters. A part of
-- release.lua, whose keys and arguments it reads. It returns nothing if the fast path does not
-- apply.

-- The text in the key of the lease. Nil or false if there is none, or if the release leaves a
-- tombstone.
local held

local function fast_release()
  held = not ARGV[4] and redis.pcall("GET", KEYS[2])
  local ours = ARGV[2]
  if type(held) ~= "string" or held:sub(1, #ours) ~= ours then return nil end
  if redis.call("PTTL", KEYS[2]) <= ENDED_MS then return nil end
  redis.call("DEL", KEYS[2])
  return "released"
end
