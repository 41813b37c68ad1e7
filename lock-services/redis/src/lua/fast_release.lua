-- The fast path of a release without waiters, of a full lease that needs no tombstone. For
-- release.lua, whose keys and arguments it reads. It answers nothing to a caller that has to go
-- another way.

-- How many keys there are of the queue and of what is suspended, if the lease is the caller's and
-- full. Nothing if that was not looked at.
local there

local function fast_release()
  there = nil
  if ARGV[3] then return nil end
  local packed, ours = redis.pcall("GET", KEYS[2]), ARGV[2]
  if type(packed) ~= "string" or packed:sub(1, #ours) ~= ours then return nil end
  if redis.call("PTTL", KEYS[2]) <= ENDED_MS then return nil end
  there = redis.call("EXISTS", KEYS[3], KEYS[4])
  if there > 0 then return nil end
  redis.call("DEL", KEYS[2])
  return "released"
end
