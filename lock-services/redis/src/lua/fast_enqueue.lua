-- The fast path of an acquire that meets a lease of another holder, and perhaps a queue, but no
-- suspended waiter. It answers "held", or takes or keeps a place in the queue. A part of
-- acquire.lua, after fast_acquire.lua. It returns nothing if the fast path does not apply.

-- Holder, ttl, attempt and metadata of the requested lease, which has no token yet.
local function asked_for()
  local _, holder, _, ttl, attempt, metadata = read_lease("0" .. ARGV[2])
  return holder, ttl, attempt, metadata
end

local function fast_enqueue()
  if type(held) ~= "string" or ARGV[5] then return nil end
  local holder, ttl, _, metadata = asked_for()
  local token, other, state, longest, attempts, its_metadata = read_lease(held)
  if not token or other == holder then return nil end
  local left = redis.call("PTTL", KEYS[2]) - ENDED_MS
  if left <= 0 then return nil end
  local asker = ARGV[4] or ""
  if asker == "" then return {"held", left} end

  local queue, suspended, details = keys_beside(KEYS[2])
  local kept, ticket
  if state == "f" then
    redis.call("SET", KEYS[2], write_lease(token, other, "w", longest, attempts, its_metadata),
      "KEEPTTL")
  else
    if redis.call("EXISTS", suspended) > 0 then return nil end
    kept = redis.call("HGET", details, holder)
  end
  if kept then
    -- The fast path is only for a repeated request of the same attempt.
    if kept:sub(1, #asker + 1) ~= asker .. ":" then return nil end
    ticket = kept:match("^[^:]+:%d+:%d*:(%d+):")
  else
    ticket = ("%d"):format(redis.call("HINCRBY", details, "#", "1"))
  end
  local time = redis.call("TIME")
  local now = time[1] .. ("000000" .. time[2]):sub(-6, -4)
  redis.call("HSET", details, holder, asker .. ":" .. ttl .. "::" .. ticket .. ":" .. now .. ":"
    .. metadata)
  redis.call("ZADD", queue, ticket, holder)
  redis.call("PEXPIRE", queue, QUEUE_TEXT)
  redis.call("PEXPIRE", details, QUEUE_TEXT)
  -- A new waiter is the last. The hash also has the last ticket and the waiter's own details.
  local place = kept and redis.call("ZRANK", queue, holder) or redis.call("HLEN", details) - 2
  return {"waiting", left, now, place}
end
