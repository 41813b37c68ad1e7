-- The fast path of a release that nobody waits for, of a full lease that needs no tombstone. For
-- release.lua, whose keys and arguments it reads. It answers nothing to a caller that has to go
-- another way.

-- How many keys there are of the queue and of what is suspended; and the state of the caller's
-- lease. Nothing if that was not looked at.
local there, state

local function fast_release()
  there, state = nil, nil
  if ARGV[4] then return nil end
  there = redis.call("EXISTS", KEYS[3], KEYS[4])
  -- The beginning of a lease and its state, as shared.lua reads them.
  local packed, ours = redis.pcall("GET", KEYS[2]), ARGV[2] .. ":" .. ARGV[3] .. ":"
  if type(packed) ~= "string" or packed:sub(1, #ours) ~= ours then return nil end
  if redis.call("PTTL", KEYS[2]) <= ENDED_MS then return nil end
  state = packed:sub(#ours + 1, #ours + 1)
  if there > 0 or state ~= "f" then return nil end
  redis.call("DEL", KEYS[2])
  return "released"
end
