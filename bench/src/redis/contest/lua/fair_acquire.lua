-- Takes a lock that is free, if nobody is in line or the caller is its head; else gets in line.
--
-- KEYS[1] lock, a hash from its owner to how often it was taken
-- KEYS[2] waiters, a list
-- KEYS[3] deadlines of waiters, a sorted set
-- KEYS[4] token counter
-- ARGV[1] owner
-- ARGV[2] ttl in ms
-- ARGV[3] how long a waiter is waited for, in ms
-- ARGV[4] now in ms, as the client has it
--
-- Returns the token, or how long to wait, in ms and negative

local now = tonumber(ARGV[4])
while true do
  local head = redis.call("LINDEX", KEYS[2], 0)
  if not head then break end
  local deadline = redis.call("ZSCORE", KEYS[3], head)
  if deadline and tonumber(deadline) > now then break end
  redis.call("ZREM", KEYS[3], head)
  redis.call("LPOP", KEYS[2])
end

local free = redis.call("EXISTS", KEYS[1]) == 0
local head = redis.call("LINDEX", KEYS[2], 0)
if free and (not head or head == ARGV[1]) then
  redis.call("LPOP", KEYS[2])
  redis.call("ZREM", KEYS[3], ARGV[1])
  for _, waiter in ipairs(redis.call("ZRANGE", KEYS[3], 0, -1)) do
    redis.call("ZINCRBY", KEYS[3], -tonumber(ARGV[3]), waiter)
  end
  redis.call("HSET", KEYS[1], ARGV[1], 1)
  redis.call("PEXPIRE", KEYS[1], ARGV[2])
  return redis.call("INCR", KEYS[4])
end

local deadline = redis.call("ZSCORE", KEYS[3], ARGV[1])
if deadline then return -math.max(1, tonumber(deadline) - tonumber(ARGV[3]) - now) end

local last = redis.call("LINDEX", KEYS[2], -1)
local ahead
if last then
  ahead = tonumber(redis.call("ZSCORE", KEYS[3], last)) - now
else
  ahead = redis.call("PTTL", KEYS[1])
end
redis.call("ZADD", KEYS[3], ahead + tonumber(ARGV[3]) + now, ARGV[1])
redis.call("RPUSH", KEYS[2], ARGV[1])
return -math.max(1, ahead)
