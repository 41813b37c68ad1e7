-- The functions that scripts share. Each script begins with them.
--
-- The key of a lease (lease.lua) stays for ENDED_MS after the end of the lease, unless another
-- lease is granted, so that a late request of its holder does not count as a new request. So the
-- end follows from the time to live of the key. It is 1 ms later than clients count. A moment
-- inside the value would have to be formatted and read again, which takes longer than all commands
-- of an acquire without contention.

-- The time of the server's clock, and the same in ms. The time in ms is text that is put together
-- from text, because formatting a number takes longer than a command.
local time, now

local function look_at_the_clock()
  time = redis.call("TIME")
  now = time[1] .. ("000000" .. time[2]):sub(-6, -4)
end

-- Great numbers are sent as text, because a double would be written with an exponent, or cut off.
-- Tokens and times are whole numbers, and formatting them as whole numbers takes a third of the
-- time.
local function text(number) return string.format("%d", number) end

-- The lease in a key. Without a lease: nil, and whether the key holds something else.
local function load(key)
  local packed = redis.pcall("GET", key)
  if not packed or packed == VACANT then return nil, false end
  if type(packed) == "table" then return nil, true end
  local token, holder, state, longest, attempts, metadata = read_lease(packed)
  if not token then return nil, true end
  -- A table that is created with all its fields has the right size at once.
  return {token = token, holder = holder, state = state, longest = longest, attempts = attempts,
    metadata = metadata, left = redis.call("PTTL", key) - ENDED_MS}, false
end

local function pack(lease)
  return write_lease(lease.token, lease.holder, lease.state, lease.longest, lease.attempts,
    lease.metadata)
end

-- Makes a lease last for this time from now, and never shorter than a client relies on. More than
-- the longest promise can be left only if the clock was set back, and no client relies on that.
local function extend(lease, ttl)
  lease.longest = text(math.max(lease.longest or 0, ttl))
  lease.left = math.max(ttl + 1, math.min(lease.left or 0, lease.longest + 1))
  lease.stays = text(lease.left + ENDED_MS)
end

-- Writes a lease. Its end does not change, unless it was extended.
local function write(key, lease)
  if lease.stays then
    redis.call("SET", key, pack(lease), "PX", lease.stays)
  else
    redis.call("SET", key, pack(lease), "KEEPTTL")
  end
end

-- A lease keeps each attempt that got the lease in an answer or waits for it, because a cancel ends
-- the lease only if no other attempt relies on it. There may be any number of attempts. After 128
-- attempts, "0" stands for all further ones. No cancel removes "0", so the lease then ends when it
-- is released or runs out.
local function has_all(attempts) return ("," .. attempts):sub(-2) == ",0" end

local function with_attempt(attempts, attempt)
  if attempts:find(attempt, 1, true) or has_all(attempts) then return attempts end
  if #attempts >= 128 * 17 - 1 then attempt = "0" end
  return attempts .. "," .. attempt
end

-- The attempts without this one, or nil if none is left.
local function without_attempt(attempts, attempt)
  local others = {}
  for other in attempts:gmatch("%x+") do
    if other ~= attempt then others[#others + 1] = other end
  end
  if #others > 0 then return table.concat(others, ",") end
end
