-- Gives a lock back, and tells the head of the line.
--
-- KEYS[1] lock
-- KEYS[2] waiters
-- KEYS[3] deadlines of waiters
-- KEYS[4] token counter, whose hash tag the channels have
-- ARGV[1] owner
-- ARGV[2] now in ms, as the client has it
--
-- Returns 1, or 0 if another one owns the lock

local now = tonumber(ARGV[2])
while true do
  local head = redis.call("LINDEX", KEYS[2], 0)
  if not head then break end
  local deadline = redis.call("ZSCORE", KEYS[3], head)
  if deadline and tonumber(deadline) > now then break end
  redis.call("ZREM", KEYS[3], head)
  redis.call("LPOP", KEYS[2])
end

if redis.call("HEXISTS", KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call("DEL", KEYS[1])
local head = redis.call("LINDEX", KEYS[2], 0)
if head then
  local process, waiter = head:match("^(%d+):(%d+)$")
  redis.call("PUBLISH", KEYS[4]:match("^{.*}:") .. "free:" .. process, waiter)
end
return 1
