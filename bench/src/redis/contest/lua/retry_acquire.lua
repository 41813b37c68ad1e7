-- Takes a lease that nobody has.
--
-- KEYS[1] lease
-- KEYS[2] token counter
-- ARGV[1] holder
-- ARGV[2] ttl in ms
--
-- Returns the token, or the time that is left of another's lease, in ms and negative

if redis.call("SET", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then
  return redis.call("INCR", KEYS[2])
end
return -math.max(1, redis.call("PTTL", KEYS[1]))
