-- The fast path of an acquire that meets a lease of another holder, and perhaps a queue, but no
-- suspended waiter: it is answered "held", or takes a place in the queue, or keeps it. For
-- acquire.lua, behind fast_acquire.lua. It answers nothing to a caller that has to go another way.

-- Holder, ttl, attempt and metadata of the lease that is asked for, which has no token yet.
local function asked_for()
  local _, holder, _, ttl, attempt, metadata = read_lease("0" .. ARGV[2])
  return holder, ttl, attempt, metadata
end

-- How long the lease stands in the way, or nothing if it is over or the caller's own.
local function blocked_by_another(holder)
  local packed = redis.pcall("GET", KEYS[2])
  if type(packed) ~= "string" then return nil end
  local _, other = read_lease(packed)
  if not other or other == holder then return nil end
  local left = redis.call("PTTL", KEYS[2]) - ENDED_MS
  if left > 0 then return left end
end

local function fast_enqueue()
  -- Two are the lease and, if there is a queue, nothing else.
  if not there or there > 2 then return nil end
  if there == 2 and redis.call("EXISTS", KEYS[3]) == 0 then return nil end
  local holder, ttl, _, metadata = asked_for()
  local left = blocked_by_another(holder)
  if not left then return nil end
  local asker = ARGV[4] or ""
  if asker == "" then return {"held", left} end

  local kept, ticket = redis.call("HGET", KEYS[5], holder), nil
  if kept then
    -- The same attempt asks for the same.
    if kept:sub(1, #asker + 1) ~= asker .. ":" then return nil end
    ticket = kept:match("^[^:]+:%d+:%d*:(%d+):")
  else
    ticket = ("%d"):format(redis.call("HINCRBY", KEYS[5], "#", "1"))
  end
  local time = redis.call("TIME")
  local now = time[1] .. ("000000" .. time[2]):sub(-6, -4)
  redis.call("HSET", KEYS[5], holder, asker .. ":" .. ttl .. "::" .. ticket .. ":" .. now .. ":"
    .. metadata)
  redis.call("ZADD", KEYS[3], ticket, holder)
  redis.call("PEXPIRE", KEYS[3], QUEUE_TEXT)
  redis.call("PEXPIRE", KEYS[5], QUEUE_TEXT)
  -- A new one is the last; the last ticket and its own details are in the hash too.
  local place = kept and redis.call("ZRANK", KEYS[3], holder) or redis.call("HLEN", KEYS[5]) - 2
  return {"waiting", left, now, place}
end
