-- The fast path of a release with waiters, the first of which can be reached and has no special
-- option, while no waiter is suspended. For release.lua, behind fast_release.lua. It answers
-- nothing to a caller that has to go another way.

-- The first in the queue, and its details.
local function first_waiter()
  local head = redis.call("ZRANGE", KEYS[3], "0", "0")[1]
  return head, head and redis.call("HGET", KEYS[5], head)
end

-- Lifts a counter that was below the clock before its last token to it. Returns the last token.
local function lift(token, time)
  local behind = time[1] * 100000 + math.floor(time[2] / 10) - (token - 1)
  return behind > 0 and redis.call("INCRBY", KEYS[1], ("%d"):format(behind)) or token
end

local function fast_hand_over()
  -- One is the queue and nothing else.
  if there ~= 1 then return nil end
  if redis.call("PTTL", KEYS[1]) ~= -1 then return nil end
  local head, details = first_waiter()
  if not details then return nil end
  -- With a channel, one attempt, and no floor.
  local client, attempt, ttl, metadata = details:match("^(%x+)/(%x+):(%d+)::%d+:%d+:(.*)$")
  if not client then return nil end
  local time = redis.call("TIME")
  local now = time[1] .. ("000000" .. time[2]):sub(-6, -4)
  local token = redis.pcall("INCRBY", KEYS[1], "1")
  if type(token) ~= "number" then return nil end
  if ARGV[1] == "raise" then token = lift(token, time) end
  if token <= 0 or token > TOKEN_MAX then
    redis.call("INCRBY", KEYS[1], "-1")
    return nil
  end
  token = ("%d"):format(token)
  if ttl + 0 > PROVISIONAL_MS then ttl = PROVISIONAL_TEXT end
  local channel = KEYS[1]:sub(1, -#"counter" - 1) .. "grants:" .. client
  local receivers = redis.pcall("SPUBLISH", channel, attempt .. ":" .. head .. ":" .. token .. ":"
    .. ttl .. ":" .. now .. ":" .. KEYS[2])
  -- The token is lost.
  if type(receivers) ~= "number" or receivers == 0 then return nil end
  redis.call("SET", KEYS[2], write_lease(token, head, "p", ttl, attempt, metadata),
    "PX", ("%d"):format(ttl + 1 + ENDED_MS))
  if ARGV[1] == "raise" then return "raised" end
  return "released"
end
