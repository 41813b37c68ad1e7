-- The way of an acquire that meets nobody: no lease, no line, no tombstone, a sound counter, and
-- nothing special that is asked for. It comes before everything else, which takes several times as
-- long and is gone through otherwise. For acquire.lua, whose keys and arguments it reads.

if ARGV[1] ~= "raise" and not ARGV[6]
  and redis.call("EXISTS", KEYS[2], KEYS[3], KEYS[4], KEYS[6], KEYS[7]) == 0
  and redis.call("PTTL", KEYS[1]) == -1 then
  local reserve = ARGV[5] or "1"
  local last = redis.pcall("INCRBY", KEYS[1], reserve)
  if type(last) == "number" then
    local token = last - reserve + 1
    if token > 0 and last <= TOKEN_MAX then
      redis.call("SET", KEYS[2], ("%d"):format(token) .. ARGV[2], "PX", ARGV[3])
      return token
    end
    redis.call("INCRBY", KEYS[1], "-" .. reserve)
  end
end
