-- Ends a lease, and tells everybody.
--
-- KEYS[1] lease
-- KEYS[2] channel
-- ARGV[1] holder
--
-- Returns 1, or 0 if another one holds the lease

if redis.call("GET", KEYS[1]) ~= ARGV[1] then return 0 end
redis.call("DEL", KEYS[1])
redis.call("PUBLISH", KEYS[2], "0")
return 1
