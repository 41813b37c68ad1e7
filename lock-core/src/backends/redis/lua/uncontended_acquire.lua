-- The way of an acquire that meets nobody: no lease, no line, no tombstone, a sound counter, and
-- nothing special that is asked for. It comes before everything else, which takes several times as
-- long and is gone through otherwise. For acquire.lua, whose keys and arguments it reads.

if ARGV[2] == "0" and ARGV[7] == "" and ARGV[11] == "0" and ARGV[12] == "1"
  and redis.call("EXISTS", KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6], KEYS[7]) == 0
  and redis.call("PTTL", KEYS[1]) == -1 then
  local drawn = redis.pcall("INCRBY", KEYS[1], 1)
  if type(drawn) == "number" then
    if drawn > 0 and drawn <= TOKEN_MAX then
      -- Read as text, which is faster than to format it.
      local token = redis.call("GET", KEYS[1])
      redis.call("SET", KEYS[2], token .. ":" .. ARGV[4] .. ":f:0:1:" .. ARGV[5] .. ":" .. ARGV[14],
        "PX", ARGV[6] + 1 + ENDED_MS)
      return {"granted", token, ARGV[6], "f", "1"}
    end
    redis.call("INCRBY", KEYS[1], -1)
  end
end
