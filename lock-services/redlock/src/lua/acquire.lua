#!lua
-- Begins with first_grant.lua, serving.lua, greater.lua, counts.lua, lease.lua.
--
-- Grants the lease of this node and counts up, or returns the reason why it does not.
--
-- KEYS[1] marker of the node
-- KEYS[2] counter of the resource
-- KEYS[3] lease of the resource
-- KEYS[4] what has ended of this holder; its name ends with the holder
-- ARGV[1] what comes before the count in the lease: "holder:nonce:0:", with the nonce of this try
-- ARGV[2] what follows it: ":drift:attempt:metadata"
-- ARGV[3] how long the key of the lease stays in ms
-- ARGV[4] ttl in ms
-- ARGV[5] floor: the least count that the caller accepts; left out if there is none
-- ARGV[6] how far above the counter a floor may lie; left out for any distance
--
-- Returns count:incarnation: granted
--       | {"again", token, left_ms} | {"held", left_ms, nonce}
--       | {"ended"} | {"ran_out"} | {"broken_counter"} | {"exhausted"}
--       | {"implausible", greatest} | {"too_long", longest_ms}
--       | {"no_state"} | {"not_serving", marker}
--
-- "again": this holder already has the lease, under a token that was raised here. This is no grant:
-- nothing is counted, and the time is not extended. If the same try sends the script again, it
-- counts up again, unless the lease was raised. The script counts before it writes the lease,
-- because an error does not roll back.

local incarnation, base, longest = serving(marker or redis.call("GET", KEYS[1]))
if not incarnation then
  local wrong = base
  return wrong
end
local found = redis.call("MGET", KEYS[2], KEYS[3], KEYS[4])
local counter, ended = found[1], found[3]
local holder, nonce = ARGV[1]:match("^(%x+):(%x+):")
local attempt, floor = ARGV[2]:match("^:%d+:(%x+):"), ARGV[5]
if ended then
  if ended:find("=", 1, true) or ended:find(attempt, 1, true) or ended:find(nonce, 1, true) then
    return {"ended"}
  end
  if ended:find("~", 1, true) then return {"ran_out"} end
end

local lease = load(KEYS[3], found[2])
if lease and lease.holder == holder and lease.raised then
  if lease.left <= 0 then return {"ran_out"} end
  if not lease.attempts:find(attempt, 1, true) then
    lease.attempts = lease.attempts .. "," .. attempt
    redis.call("SET", KEYS[3], pack(lease), "KEEPTTL")
  end
  return {"again", lease.token, text(lease.left)}
end
if lease and lease.holder ~= holder then
  if lease.blocked > 0 then
    return {"held", text(math.max(lease.left, 1)), lease.nonce}
  end
  if lease.raised then
    remember(KEYS[4]:sub(1, -#holder - 1) .. lease.holder, "~")
  end
end

if tonumber(ARGV[4]) > tonumber(longest) then return {"too_long", longest} end
if floor and ARGV[6] then
  local greatest = (counter or base) + ARGV[6]
  if tonumber(floor) > greatest then return {"implausible", text(greatest)} end
end

local count, wrong = count_up(KEYS[2], base)
if not count then return wrong end
if floor and is_greater(floor, count) then
  redis.call("SET", KEYS[2], floor)
  count = floor
end
redis.call("SET", KEYS[3], ARGV[1] .. count .. ARGV[2], "PX", ARGV[3])
return count .. ":" .. incarnation
