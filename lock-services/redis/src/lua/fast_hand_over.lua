-- The fast path of a release of a full lease that needs no tombstone, while no waiter is suspended.
-- If there are waiters, the first of them can be reached and has no special option. A part of
-- release.lua, after fast_release.lua. It returns nothing if the fast path does not apply.

-- Whether the lease belongs to the caller, is full, and has not ended.
local function is_ours()
  if type(held) ~= "string" then return false end
  local token, holder, state = held:match("^(%d+):(%x+):(%l):")
  local our_token, our_holder = grant_of(ARGV[2])
  return token == our_token and holder == our_holder and state ~= "p"
    and redis.call("PTTL", KEYS[2]) > ENDED_MS
end

-- Lifts the counter to the clock if it was below the clock before its last token. Returns the last
-- token.
local function lift(token, time)
  local behind = time[1] * 100000 + math.floor(time[2] / 10) - (token - 1)
  return behind > 0 and redis.call("INCRBY", KEYS[1], ("%d"):format(behind)) or token
end

-- Draws a token at this time. Nil if no token can be drawn.
local function draw_at(time)
  if redis.call("PTTL", KEYS[1]) ~= -1 then return nil end
  local token = redis.pcall("INCRBY", KEYS[1], "1")
  if type(token) ~= "number" then return nil end
  if ARGV[1] == "raise" then token = lift(token, time) end
  if token > 0 and token <= TOKEN_MAX then return ("%d"):format(token) end
  redis.call("INCRBY", KEYS[1], "-1")
end

local function fast_hand_over()
  if not is_ours() then return nil end
  local queue, suspended, details = keys_beside(KEYS[2])
  local others = redis.call("EXISTS", queue, suspended, details)
  if others == 0 then
    redis.call("DEL", KEYS[2])
    return "released"
  end
  local head = redis.call("ZRANGE", queue, "0", "0")[1]
  local asked = head and redis.call("HGET", details, head)
  -- A third key would be the suspended waiters.
  if not asked or others > 2 then return nil end
  -- The details of a waiter with a channel, one attempt, and no floor.
  local client, attempt, ttl, metadata = asked:match("^(%x+)/(%x+):(%d+)::%d+:%d+:(.*)$")
  if not client then return nil end
  local time = redis.call("TIME")
  local now = time[1] .. ("000000" .. time[2]):sub(-6, -4)
  local token = draw_at(time)
  if not token then return nil end

  local state = client == ARGV[3] and "h" or "p"
  if state == "h" then
    redis.call("ZREM", queue, head)
    redis.call("HDEL", details, head)
    -- Only the last ticket is left.
    if redis.call("HLEN", details) == 1 then redis.call("DEL", details) end
  elseif ttl + 0 > PROVISIONAL_MS then
    ttl = PROVISIONAL_TEXT
  end
  local grant = attempt .. ":" .. head .. ":" .. token .. ":" .. ttl .. ":" .. now .. ":" .. KEYS[2]
  if state == "p" then
    local receivers = redis.pcall("SPUBLISH", base .. "grants:" .. client, grant)
    -- No client has received the grant. The token is lost.
    if type(receivers) ~= "number" or receivers == 0 then return nil end
  end
  redis.call("SET", KEYS[2], write_lease(token, head, state, ttl, attempt, metadata),
    "PX", ("%d"):format(ttl + 1 + ENDED_MS))
  if ARGV[1] == "raise" then return {"raised", state == "h" and grant or nil} end
  return {"released", state == "h" and grant or nil}
end
