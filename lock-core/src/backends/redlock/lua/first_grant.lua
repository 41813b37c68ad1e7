-- What is met most: nobody has the lease, nothing of this holder has ended, the counter is there
-- and there is no floor. Everything else is left to what comes after it. For scripts whose KEYS and
-- ARGV are those of acquire.lua.
--
-- Returns {"granted", count, life}

local found = redis.call("MGET", KEYS[1], KEYS[2], KEYS[3], KEYS[4])
if found[1] and found[2] and not found[3] and not found[4] and not ARGV[7] then
  local life, longest = found[1]:match("^([^:]+):s:%d+:(%d+):")
  if life and tonumber(ARGV[6]) <= tonumber(longest) then
    local counted = redis.pcall("INCR", KEYS[2])
    -- Below that a number of Lua is exact.
    if type(counted) == "number" and counted <= EXACT_MAX then
      local count = string.format("%.0f", counted)
      redis.call("SET", KEYS[3], ARGV[1] .. ":" .. ARGV[2] .. ":0:" .. count .. ARGV[4], "PX",
        ARGV[5])
      return {"granted", count, life}
    end
  end
end
