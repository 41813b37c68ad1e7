-- Counts up and returns the count, or nil and the answer with the reason. A missing counter begins
-- at the base of the node.
local function count_up(counter, base)
  local counted = redis.pcall("INCR", counter)
  if type(counted) == "table" then return nil, {"broken_counter"} end
  if counted == 1 and base ~= "0" then
    redis.call("SET", counter, base)
    redis.call("INCR", counter)
  end
  local count = redis.call("GET", counter)
  if is_greater(count, TOKEN_MAX) then return nil, {"exhausted"} end
  return count
end
