-- What the scripts share; each begins with it. Nothing here runs by itself but the clock.
--
-- A lease is "token:holder:attempts:expires:delay:state:reserved:metadata":
--   token     first token of the grant; `reserved` of them are the holder's
--   holder    digest of the acquisition's secret, 32 hex digits
--   attempts  the attempts that rely on it, joined by ","
--   expires   end in ms of the server's clock, 1 ms later than anybody is told
--   delay     ms after its end in which nobody else is granted
--   state     "f" full, or "p" provisional: pushed to a waiter that has not confirmed it
-- Its key stays after its end, until another is granted or ENDED_MS have passed, so that a late
-- request of its holder is not taken for a new one.

local time = redis.call("TIME")
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- Numbers go out as text: a double is written with an exponent, or cut off.
local function text(number) return string.format("%.0f", number) end

-- The lease that a key holds, or nil and whether the key holds something else.
local function load(key)
  local packed = redis.pcall("GET", key)
  if not packed then return nil, false end
  if type(packed) == "table" then return nil, true end
  local lease = {}
  lease.token, lease.holder, lease.attempts, lease.expires, lease.delay, lease.state,
    lease.reserved, lease.metadata =
      packed:match("^(%d+):(%x+):([%x,]+):(%d+):(%d+):(%l):(%d+):(.*)$")
  if not lease.token then return nil, true end
  lease.left = lease.expires - now
  -- Until then nobody else is granted. A provisional lease has no delay: its holder may be gone.
  lease.blocked = lease.left + (lease.state == "f" and lease.delay or 0)
  return lease, false
end

local function save(key, lease)
  local packed = table.concat({lease.token, lease.holder, lease.attempts, lease.expires,
    lease.delay, lease.state, lease.reserved, lease.metadata}, ":")
  local stays = lease.expires - now + lease.delay + ENDED_MS
  redis.call("SET", key, packed, "PX", text(math.max(stays, 1)))
end

-- Makes it last for at least so long from now. Several may rely on it, so it never gets shorter.
local function extend(lease, ttl)
  local expires = now + ttl + 1
  if expires > tonumber(lease.expires) then lease.expires = text(expires) end
end

-- Every attempt that is told of a lease, or waits for it, is kept: a cancel ends it only if no
-- other one relies on it.
local function with_attempt(attempts, attempt)
  if attempts:find(attempt, 1, true) then return attempts end
  return attempts .. "," .. attempt
end

-- The attempts but for this one, or nil if none is left.
local function without_attempt(attempts, attempt)
  local others = {}
  for other in attempts:gmatch("%x+") do
    if other ~= attempt then others[#others + 1] = other end
  end
  if #others > 0 then return table.concat(others, ",") end
end
