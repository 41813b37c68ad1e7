-- The common case: the node serves, the lease exists and has not ended, and nothing of this holder
-- has ended. The script after this part handles all other cases. For scripts whose KEYS and ARGV
-- are those of release.lua.
--
-- Returns "released"

local found = redis.call("MGET", KEYS[1], KEYS[2], KEYS[3])
local marker, packed = found[1], found[2]
if marker and packed and not found[3] and marker:find(":s:", 34, true) == 34
  and packed:find(ARGV[1], 1, true) == 1 then
  -- The text has the form of lease.lua. A holder and a nonce have fixed lengths.
  local token, drift = packed:match("^:(%d+):%d+:(%d+):", #ARGV[1] + 18)
  if token == ARGV[2] and redis.call("PTTL", KEYS[2]) - ENDED_MS - drift > 0 then
    redis.call("DEL", KEYS[2])
    redis.call("SET", KEYS[3], "=" .. token, "PX", ENDED_TEXT)
    return "released"
  end
end
