#!lua flags=allow-oom
-- Begins with serving.lua, greater.lua, counts.lua, lease.lua.
--
-- Takes the lease with a token from its holder, and gives it to a try that draws the next token,
-- which no holder gets. To the former holder the lease looks as if it had run out.
--
-- KEYS[1] marker of the node
-- KEYS[2] counter of the resource
-- KEYS[3] lease of the resource
-- KEYS[4] what has ended of the try's holder; its name ends with that holder
-- ARGV[1] what comes before the count in the lease: "holder:nonce:0:", of the try
-- ARGV[2] what follows it: ":drift:attempt:metadata"
-- ARGV[3] how long the key of the lease stays in ms
-- ARGV[4] token of the lease to end
--
-- Returns count:incarnation: the try has the lease | {"not_held"}
--       | {"ended"} | {"broken_counter"} | {"exhausted"}
--       | {"no_state"} | {"not_serving", marker}
--
-- There is no moment between the two leases, so no grant can count between their tokens. If the
-- script is sent again, it ends nothing more, because the token is compared. A try that was undone
-- is refused.

local incarnation, base = serving(redis.call("GET", KEYS[1]))
if not incarnation then
  local wrong = base
  return wrong
end
local holder, nonce = ARGV[1]:match("^(%x+):(%x+):")
local found = redis.call("MGET", KEYS[3], KEYS[4])
if found[2] and found[2]:find(nonce, 1, true) then return {"ended"} end
local lease = load(KEYS[3], found[1])
if not lease or not lease.raised or lease.token ~= ARGV[4] or lease.left <= 0 then
  return {"not_held"}
end

local count, wrong = count_up(KEYS[2], base)
if not count then return wrong end
remember(KEYS[4]:sub(1, -#holder - 1) .. lease.holder, "~")
redis.call("SET", KEYS[3], ARGV[1] .. count .. ARGV[2], "PX", ARGV[3])
return count .. ":" .. incarnation
