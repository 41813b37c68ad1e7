-- The common case: the node serves and has not lost its state, the lease belongs to this try, and
-- the counter has not changed since and need not be raised. The script after this part handles all
-- other cases. For scripts whose KEYS and ARGV are those of raise.lua.
--
-- Returns "raised"

local found = redis.call("MGET", KEYS[1], KEYS[2], KEYS[3])
local marker, packed = found[1], found[3]
if marker and packed and found[2] == ARGV[3] and not ARGV[4] then
  local serving, ours = ARGV[1] .. ":s:", ARGV[2] .. "0:" .. ARGV[3] .. ":"
  if marker:find(serving, 1, true) == 1 and packed:find(ours, 1, true) == 1 then
    local raised = ARGV[2] .. ARGV[3] .. packed:sub(#ARGV[2] + 2)
    redis.call("SET", KEYS[3], raised, "KEEPTTL")
    return "raised"
  end
end
