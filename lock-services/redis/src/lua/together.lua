#!lua
-- Begins with lease.lua, keys.lua, shared.lua, keep.lua, tokens.lua.
--
-- Grants several resources of one shard at once, each with a token of its own, or none of them.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the first resource, and one key more for every further resource
-- ARGV[1] where counters start: "clock", "raise" to lift them to it first, or a token
-- ARGV[2] start: "1" if a missing counter may start now
-- ARGV[3] holder of the first resource
-- ARGV[4] its attempt
-- ARGV[5] its ttl in ms
-- ARGV[6] its floor, or ""
-- ARGV[7] its metadata, and five arguments more for every further resource
--
-- Returns {"granted", token, left_ms, state, ..} with these three for each, in order
--       | {"held", left_ms} | {"ended"} | {"missing"} | {"implausible", greatest} | {"exhausted"}
--       | {"broken_counter", why} | {"broken_lease"}
--
-- Idempotent: a lease that this holder already has keeps its token, its end and its state, and
-- needs no counter. Tokens are drawn only for the other resources. Waiters are bypassed: if a
-- resource is free and has waiters, all of them are out of reach. Atomic, but an error does not
-- roll back.

local function together()
  look_at_the_clock()
  local resources, floor, blocked, new = {}, "", 0, 0
  for i = 1, (#ARGV - 2) / 5 do
    local key, a = KEYS[i + 1], 5 * i - 2
    local lease, foreign = load(key)
    if foreign then return {"broken_lease"} end
    local queue, suspended, details = keys_beside(key)
    if is_buried(suspended, ARGV[a], ARGV[a + 1]) then return {"ended"} end
    local ours = lease and lease.holder == ARGV[a]
    if ours and lease.left <= 0 then return {"ended"} end
    if not ours then
      new = new + 1
      if lease then blocked = math.max(blocked, lease.left) end
      if (tonumber(ARGV[a + 3]) or 0) > (tonumber(floor) or 0) then floor = ARGV[a + 3] end
    end
    resources[i] = {key = key, queue = queue, suspended = suspended, details = details,
      lease = ours and lease, former = not ours and lease,
      holder = ARGV[a], attempt = ARGV[a + 1], ttl = ARGV[a + 2], metadata = ARGV[a + 4]}
  end
  if blocked > 0 then return {"held", text(blocked)} end

  local token
  if new > 0 then
    local counter, wrong = counter_before(floor, new, ARGV[2] == "1")
    if not counter then return wrong end
    token = draw(counter, new)
  end

  local grants = {}
  for _, one in ipairs(resources) do
    local lease = one.lease
    if lease then
      lease.attempts, lease.changed = with_attempt(lease.attempts, one.attempt), true
      if lease.state == "h" then lease.state = "w" end
    else
      if one.former then settle(one.former, one.queue, one.suspended, one.details) end
      lease = {token = text(token), holder = one.holder, attempts = one.attempt,
        state = "f", metadata = one.metadata}
      extend(lease, one.ttl)
      token = token + 1
    end
    keep(one.key, lease, one.queue, one.suspended, one.details)
    grants[#grants + 1] = lease.token
    grants[#grants + 1] = text(lease.left - 1)
    grants[#grants + 1] = lease.state
  end
  return {"granted", unpack(grants)}
end
