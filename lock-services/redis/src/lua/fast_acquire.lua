-- The fast path of an acquire of an idle resource, with a sound counter, and no special option. A
-- part of acquire.lua, whose keys and arguments it reads. It returns nothing if the fast path does
-- not apply.

-- The text in the key of the lease, or nil.
local held

local function fast_acquire()
  held = redis.pcall("GET", KEYS[2])
  if held or ARGV[5] or ARGV[1] == "raise" or redis.call("PTTL", KEYS[1]) ~= -1 then return nil end
  local token = redis.pcall("INCRBY", KEYS[1], "1")
  if type(token) ~= "number" then return nil end
  if token > 0 and token <= TOKEN_MAX then
    -- The client wrote the whole text of the lease except the token.
    redis.call("SET", KEYS[2], ("%d"):format(token) .. ARGV[2], "PX", ARGV[3])
    return token
  end
  redis.call("INCRBY", KEYS[1], "-1")
end
