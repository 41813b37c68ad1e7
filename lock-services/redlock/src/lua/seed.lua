#!lua
-- Begins with healing.lua.
--
-- Gives counters to a node that is being healed. A counter that the node already has is left alone.
--
-- KEYS[1] marker of the node
-- KEYS[2] first counter, and one key more for every further one
-- ARGV[1] incarnation in which it is healed
-- ARGV[2] count of the first counter, and one argument more for every further one: the greatest of
--         N/2 + 1 other nodes, each counted up
--
-- Returns "seeded" | {"other", marker}: it is not being healed in this incarnation
--
-- Any client may send it, any number of times. Atomic for each counter.

local yes, wrong = healing(redis.call("GET", KEYS[1]), ARGV[1])
if not yes then return wrong end
for i = 2, #KEYS do redis.call("SET", KEYS[i], ARGV[i], "NX") end
return "seeded"
