#!lua
-- Tries fast_acquire.lua, fast_enqueue.lua.
-- Begins with lease.lua, keys.lua, shared.lua, keep.lua, tokens.lua, queue.lua.
--
-- Grants a lease, or takes a place in the queue, or returns the time that is left of another lease.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] what follows the token in the lease: ":holder:f:ttl:attempt:metadata"
-- ARGV[3] how long the key of the lease stays in ms
-- ARGV[4] asker, as the details of waiters have it; without one no place in the queue is taken
-- ARGV[5] floor: the least token that the caller accepts
-- ARGV[6] start: "1" if a missing counter may start now
-- ARGV[7] how many may wait at most
-- A missing argument is "", or left out if none comes after it.
--
-- Returns a token: granted as it was asked for, in full
--       | {"granted", token, left_ms, state} | {"again", token, left_ms, state}
--       | {"held", left_ms}
--       | {"waiting", left_ms, now_ms, place} | {"full"} | {"more"} | {"ended"} | {"missing"}
--       | {"implausible", greatest} | {"exhausted"} | {"broken_counter", why}
--       | {"broken_lease"}
--
-- Idempotent: if the holder of a living lease sends it again, it returns the same token, its state
-- and the time left, and extends and lifts nothing. If a waiter sends it again, the waiter keeps
-- its place. A free resource goes to the head of the queue, not to the caller. Atomic, but an error
-- does not roll back.

-- The request.
local holder, ttl, attempt, metadata, asker, floor, start, waits
-- Whether a waiter is suspended, or there is a tombstone.
local marked

local function look_at_what_is_asked_for()
  holder, ttl, attempt, metadata = asked_for()
  asker, floor, start = ARGV[4] or "", ARGV[5] or "", ARGV[6] == "1"
  waits = asker ~= ""
  marked = redis.call("EXISTS", suspended) > 0
end

local function grant()
  local counter, wrong = counter_before(floor, 1, start)
  if not counter then return wrong end
  lease = {token = draw(counter, 1), holder = holder, attempts = attempt, state = "f",
    metadata = metadata}
  extend(lease, ttl)
  return {"granted", lease.token, ttl, "f"}
end

-- The number of waiters. The hash also has the last ticket, and a waiter that has not confirmed its
-- grant.
local function how_many_wait()
  local many = redis.call("HLEN", details) - 1
  if lease and lease.state == "p" then many = many - 1 end
  return math.max(many, 0)
end

-- Whether there is a place in the queue, or one could be taken.
local function has_room()
  local most = tonumber(ARGV[7])
  if not most or waiter(holder) then return true end
  if how_many_wait() < most then return true end
  forget_the_unreachable(suspended, details)
  forget_the_silent()
  return how_many_wait() < most
end

-- Takes a place in the queue, or keeps the place that the holder has.
local function enqueue()
  local entry = waiter(holder)
  if not entry then
    if marked then forget_the_unreachable(suspended, details) end
    entry = {ticket = text(redis.call("HINCRBY", details, "#", 1))}
  end
  entry.askers = with_asker(entry.askers, asker)
  entry.ttl, entry.floor, entry.metadata, entry.asked = ttl, floor, metadata, now
  write_waiter(holder, entry)
  if marked then
    redis.call("ZREM", suspended, holder, "!" .. asker:match("^%x*"))
    redis.call("PEXPIRE", suspended, QUEUE_TEXT)
  end
  redis.call("ZADD", queue, entry.ticket, holder)
  redis.call("PEXPIRE", queue, QUEUE_TEXT)
  redis.call("PEXPIRE", details, QUEUE_TEXT)
end

local function waiting()
  local left = lease and math.max(lease.left, 0) or 0
  local place = redis.call("ZRANK", queue, holder) or 0
  -- Small numbers may be sent as they are.
  return {"waiting", left, now, place}
end

-- The answer to the request. It is used only if the key of the lease holds a lease or nothing.
local function answer_to_it()
  if marked and is_buried(suspended, holder, attempt) then return {"ended"} end

  if lease and lease.holder == holder then
    if lease.left > 0 then
      local attempts = with_attempt(lease.attempts, attempt)
      lease.changed = attempts ~= lease.attempts or lease.state == "h"
      lease.attempts = attempts
      if lease.state == "h" then lease.state = "w" end
      if waits and lease.state == "p" then enqueue() end
      return {"again", lease.token, text(lease.left - 1), lease.state}
    end
    if lease.state ~= "p" then return {"ended"} end
  end

  if lease and lease.left > 0 then
    if not waits then return {"held", text(lease.left)} end
    if not has_room() then return {"full"} end
    enqueue()
    return waiting()
  end

  -- A lease that ran out is settled before the caller takes its place. The place clears the mark
  -- of the caller's client, because this request shows that the client is there, so that its other
  -- waiters are not suspended.
  local alone = not marked and redis.call("EXISTS", queue, details) == 0
  marked = marked or lease ~= nil
  settle_what_is_over()
  if alone then return grant() end

  -- A full queue does not keep a caller from a resource that turns out to be free.
  local room = not waits or has_room()
  if waits then enqueue() end
  local outcome = hand_on(waits and holder or nil, start)
  if not room and outcome ~= "caller" then leave(holder) end
  if outcome == "more" then return {"more"} end
  if outcome == "granted" then
    if not room then return {"full"} end
    if waits then return waiting() end
    return {"held", text(lease.left)}
  end
  if outcome == "stuck" and waits then
    local _, wrong = counter_before("", 1, start)
    if wrong[1] ~= "missing" then leave(holder) end
    return wrong
  end
  local answer = grant()
  -- If the counter is missing, the caller asks again, and is still the head of the queue.
  if waits and answer[1] ~= "missing" then leave(holder) end
  return answer
end

local function acquire()
  look()
  look_at_what_is_asked_for()
  if foreign then return {"broken_lease"} end
  local answer = answer_to_it()
  finish()
  return answer
end
