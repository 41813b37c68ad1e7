#!lua
-- Begins with healing.lua.
--
-- Gives a node that is being healed counters, each if there is none.
--
-- KEYS[1] marker of the node
-- KEYS[2] first counter, and one key more for every further one
-- ARGV[1] incarnation in which it is healed
-- ARGV[2] count of the first counter, and one argument more for every further one: the greatest of
--         N/2 + 1 other nodes, each counted up
--
-- Returns "seeded" | {"other", marker}: it is not being healed in this incarnation
--
-- It may be sent by any client, and any number of times. Atomic per counter.

local yes, wrong = healing(redis.call("GET", KEYS[1]), ARGV[1])
if not yes then return wrong end
for i = 2, #KEYS do redis.call("SET", KEYS[i], ARGV[i], "NX") end
return "seeded"
