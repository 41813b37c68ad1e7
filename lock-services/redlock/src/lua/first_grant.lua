-- The common case: the node serves, the resource is free, nothing of this holder has ended and
-- there is no floor. The script after this part handles all other cases. For scripts whose KEYS and
-- ARGV are those of acquire.lua.
--
-- Returns count:incarnation, in full

local marker = not ARGV[5] and redis.call("GET", KEYS[1])
-- An incarnation is 16 digits, a hyphen and a nonce of 16 digits. A pattern for its characters
-- would take longer than this fixed length.
local base, longest
if marker then base, longest = marker:match("^:s:(%d+):(%d+):", 34) end
if base and tonumber(ARGV[4]) <= tonumber(longest)
  and redis.call("EXISTS", KEYS[3], KEYS[4]) == 0 then
  local counted = redis.pcall("INCR", KEYS[2])
  if counted == 1 and base ~= "0" then
    -- The counter was missing.
    redis.call("SET", KEYS[2], base)
    counted = redis.pcall("INCR", KEYS[2])
  end
  -- Up to this limit a number of Lua is exact.
  if type(counted) == "number" and counted <= EXACT_MAX then
    local count = string.format("%d", counted)
    redis.call("SET", KEYS[3], ARGV[1] .. count .. ARGV[2], "PX", ARGV[3])
    return count .. ":" .. marker:sub(1, 33)
  end
end
