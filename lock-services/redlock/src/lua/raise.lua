#!lua flags=allow-oom
-- Begins with first_raise.lua, serving.lua, greater.lua.
--
-- Raises the counter to the token of a try, if the lease still belongs to this try, the counter has
-- not changed since, and the node has not lost its state.
--
-- KEYS[1] marker of the node
-- KEYS[2] counter of the resource
-- KEYS[3] lease of the resource
-- ARGV[1] incarnation in which the count was granted
-- ARGV[2] what the lease begins with: "holder:nonce:"
-- ARGV[3] count that was granted
-- ARGV[4] token, if it is greater than that count
--
-- Returns "raised" | "passed": something was counted since | "lost": the lease is not this try's
--       | "other_incarnation" | {"no_state"} | {"not_serving", marker}
--
-- If it is sent again, it answers "lost" and changes nothing.

local incarnation, wrong = serving(marker)
if not incarnation then return wrong end
if incarnation ~= ARGV[1] then return "other_incarnation" end
local token, ours = ARGV[4] or ARGV[3], ARGV[2] .. "0:" .. ARGV[3] .. ":"
if not packed or packed:sub(1, #ours) ~= ours then return "lost" end
if found[2] ~= ARGV[3] then return "passed" end
if is_greater(token, ARGV[3]) then redis.call("SET", KEYS[2], token) end
local raised = ARGV[2] .. token .. packed:sub(#ARGV[2] + 2)
redis.call("SET", KEYS[3], raised, "KEEPTTL")
return "raised"
