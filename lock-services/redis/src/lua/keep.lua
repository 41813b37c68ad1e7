-- The keys of a resource besides its lease, and the only function that writes the lease so that its
-- state agrees with them. For scripts that may change the lease or the other keys.

-- Writes the changes of the lease. Scripts that may have changed a resource end with this, because
-- the key of the lease has to exist as long as any other key of the resource, and its state has to
-- say so. All other keys live for QUEUE_MS from their last change. The key of a lease lives longer,
-- because it stays for ENDED_MS after the end of the lease.
local function keep(key, lease, queue, suspended, details)
  local others = redis.call("EXISTS", queue, suspended, details) > 0
  if not lease then
    if others then
      redis.call("SET", key, VACANT, "PX", QUEUE_TEXT)
    else
      redis.call("DEL", key)
    end
    return
  end
  if others and lease.state == "f" then
    lease.state, lease.changed = "w", true
  end
  if lease.changed or lease.stays then write(key, lease) end
end

-- Forgets a few entries that are older than QUEUE_MS: tombstones, and waiters that could not be
-- reached for this time and have not asked.
local function forget_the_unreachable(suspended, details)
  local over = text(now - QUEUE_MS)
  local old = redis.call("ZRANGE", suspended, "-inf", over, "BYSCORE", "LIMIT", 0, 16)
  for _, member in ipairs(old) do
    redis.call("ZREM", suspended, member)
    redis.call("HDEL", details, member)
  end
end

local function suspend(suspended, member)
  redis.call("ZADD", suspended, now, member)
  redis.call("PEXPIRE", suspended, QUEUE_TEXT)
end

-- Leaves a tombstone, and perhaps a receipt. Some older entries are forgotten, so that a busy
-- resource does not collect them.
local function bury(suspended, details, tombstone, receipt)
  forget_the_unreachable(suspended, details)
  suspend(suspended, tombstone)
  if receipt then suspend(suspended, receipt) end
end

-- Whether the acquisition or the attempt has a tombstone. If so, it is granted nothing any more.
local function is_buried(suspended, holder, attempt)
  return redis.call("ZSCORE", suspended, "=" .. holder)
    or redis.call("ZSCORE", suspended, "/" .. attempt)
end

-- The last of a waiter's askers: its client and its attempt. An asker has 33 digits at most.
local function latest_of(askers) return askers:match("(%x*)/(%x+)$", -33) end

-- Ends a lease that has run out. A full lease leaves a tombstone. A provisional lease was pushed to
-- a client that is gone, or too slow. The queue goes on without that client until it asks.
local function settle(lease, queue, suspended, details)
  if lease.state ~= "p" then return bury(suspended, details, "=" .. lease.holder) end
  local entry = redis.call("HGET", details, lease.holder)
  if not entry then return end
  redis.call("ZREM", queue, lease.holder)
  suspend(suspended, lease.holder)
  local client = latest_of(entry:match("^[^:]+"))
  if client ~= "" then suspend(suspended, "!" .. client) end
end
