-- The queue of waiters. For scripts whose
--   KEYS[1]  is the token counter of the shard
--   KEYS[2]  is the lease of the resource
-- Beside these are
--   queue      holders by ticket
--   suspended  suspended waiters, and tombstones, by since when
--   details    a hash of the waiters' details; "#" is the last ticket
--   forced     what was ended by force, "token:revocation"
--
-- Members of `suspended`:
--   holder          a waiter that could not be reached
--   "!client"       a client that could not be reached, or did not confirm a grant in time. Its
--                   waiters keep their tickets, and return to the queue when they ask again
--   "=holder"       tombstone of an acquisition: it was released, ran out, or was ended by force
--   "/attempt"      tombstone of an attempt: it was cancelled, or gave its hold back
--   "+holder:token", "+attempt:token"
--                   receipt of a release, for a copy of its request
-- The key stays for QUEUE_MS after its last change, because a late request may arrive within this
-- time.
--
-- Details are "askers:ttl:floor:ticket:asked:metadata". The askers are
-- "client/attempt", joined by ",". The latest is the last: a push is for the latest attempt, on the
-- channel of its client. A client without a channel is "".

local queue, suspended, details, forced = keys_beside(KEYS[2])

-- The lease, and whether its key holds something else.
local lease, foreign

local function look()
  look_at_the_clock()
  lease, foreign = load(KEYS[2])
end

-- The end of a script that may have changed something.
local function finish()
  keep(KEYS[2], lease, queue, suspended, details)
end

local function waiter(holder)
  local packed = redis.call("HGET", details, holder)
  if not packed then return nil end
  local askers, ttl, floor, ticket, asked, metadata =
    packed:match("^([%x/,]+):(%d+):(%d*):(%d+):(%d+):(.*)$")
  local client, latest = latest_of(askers)
  return {askers = askers, ttl = ttl, floor = floor, ticket = ticket, asked = asked,
    metadata = metadata, client = client, latest = latest}
end

local function attempts_of(entry)
  -- There is seldom more than one attempt, and a pattern would look at every digit.
  if not entry.askers:find(",", 1, true) then return entry.latest end
  return (entry.askers:gsub("%x*/", ""))
end

-- The askers without this attempt, or nil if none is left.
local function without_asker(askers, attempt)
  local others = {}
  for client, other in askers:gmatch("(%x*)/(%x+)") do
    if other ~= attempt then others[#others + 1] = client .. "/" .. other end
  end
  if #others > 0 then return table.concat(others, ",") end
end

-- The askers with this one as the latest.
local function with_asker(askers, asker)
  local others = askers and without_asker(askers, asker:sub(-16))
  return (others and others .. "," or "") .. asker
end

local function write_waiter(holder, entry)
  local packed = entry.askers .. ":" .. entry.ttl .. ":" .. entry.floor .. ":" .. entry.ticket
    .. ":" .. entry.asked .. ":" .. entry.metadata
  redis.call("HSET", details, holder, packed)
end

local function leave(holder)
  redis.call("ZREM", queue, holder)
  redis.call("ZREM", suspended, holder)
  redis.call("HDEL", details, holder)
  -- Only the last ticket is left.
  if redis.call("HLEN", details) == 1 then redis.call("DEL", details) end
end

local function settle_what_is_over()
  if not lease or lease.left > 0 then return end
  settle(lease, queue, suspended, details)
  lease = nil
end

-- Takes one attempt out of the queue. The place is given up with the last attempt.
local function drop_from_queue(holder, attempt)
  local entry = waiter(holder)
  if not entry then return end
  entry.askers = without_asker(entry.askers, attempt)
  if not entry.askers then return leave(holder) end
  write_waiter(holder, entry)
end

-- Makes room in a full queue. Forgets silent waiters among the first, because a lease may be held
-- for a long time, and its waiters may have died long ago.
local function forget_the_silent()
  for _, holder in ipairs(redis.call("ZRANGE", queue, 0, MOVES - 1)) do
    local entry = waiter(holder)
    if not entry or now - entry.asked > QUEUE_MS then leave(holder) end
  end
end

-- Pushes the grant of this token, and returns whether it reached the client. The message has the
-- time for which the client may rely on the lease.
local function reaches(entry, holder, token, kept)
  if entry.client == "" then return false end
  local message = entry.latest .. ":" .. holder .. ":" .. token .. ":" .. kept .. ":" .. now
    .. ":" .. KEYS[2]
  local receivers = redis.pcall("SPUBLISH", base .. "grants:" .. entry.client, message)
  return type(receivers) == "number" and receivers > 0
end

-- Whether only the floor of one waiter prevents a grant. The next request of that waiter gets the
-- reason as its answer. The other waiters do not wait for that request, because it may never come.
local function asks_too_much(wrong)
  return wrong[1] == "implausible" or wrong[1] == "exhausted"
end

-- Grants a free resource to the first waiter that can be reached, with a provisional lease. The
-- message is sent when the script has ended, so the lease exists before it arrives.
--
-- Returns "empty": no waiter is left; "granted"; "caller": it is the turn of the caller, which the
-- script serves; "stuck": the counter is missing or broken, which waiters learn by their next
-- request; or "more": MOVES waiters were out of reach, run it again.
local function hand_on(caller, start)
  for _ = 1, MOVES do
    local holder = redis.call("ZRANGE", queue, 0, 0)[1]
    if not holder then return "empty" end
    -- The caller is present, whatever this script has found out about its client.
    if holder == caller then return "caller" end
    local entry = waiter(holder)
    if not entry then
      redis.call("ZREM", queue, holder)
    elseif redis.call("ZSCORE", suspended, "!" .. entry.client) then
      redis.call("ZREM", queue, holder)
      suspend(suspended, holder)
    else
      local counter, wrong = counter_before(entry.floor, 1, start)
      local kept = math.min(entry.ttl, PROVISIONAL_MS)
      if counter and reaches(entry, holder, counter.first, kept) then
        lease = {token = draw(counter, 1), holder = holder, attempts = attempts_of(entry),
          state = "p", metadata = entry.metadata}
        extend(lease, kept)
        return "granted"
      end
      if wrong and not asks_too_much(wrong) then return "stuck" end
      redis.call("ZREM", queue, holder)
      suspend(suspended, holder)
      if counter and entry.client ~= "" then suspend(suspended, "!" .. entry.client) end
    end
  end
  return "more"
end
