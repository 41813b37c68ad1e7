-- The fast path of an acquire of an idle resource: no lease, no queue, no suspended waiter, no
-- tombstone, a sound counter, and no special option. For acquire.lua, whose keys and arguments it
-- reads. It answers nothing to a caller that has to go another way.

-- How many keys there are of what may stand in the way; nothing if that was not looked at.
local there

local function fast_acquire()
  there = nil
  if ARGV[5] then return nil end
  there = redis.call("EXISTS", KEYS[2], KEYS[3], KEYS[4])
  if there > 0 or ARGV[1] == "raise" or redis.call("PTTL", KEYS[1]) ~= -1 then return nil end
  local token = redis.pcall("INCRBY", KEYS[1], "1")
  if type(token) ~= "number" then return nil end
  if token > 0 and token <= TOKEN_MAX then
    -- The client wrote all of the lease but the token.
    redis.call("SET", KEYS[2], ("%d"):format(token) .. ARGV[2], "PX", ARGV[3])
    return token
  end
  redis.call("INCRBY", KEYS[1], "-1")
end
