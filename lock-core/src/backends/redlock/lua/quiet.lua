-- For how many ms a node that lost its state grants no lease yet: it may have forgotten one, so the
-- longest has to be over, and what nodes add to it for clocks that run unevenly. At most 0 if that
-- is so. The life begins with the time at which the node was taken in, in microseconds.
local function quiet_left(life, longest)
  local time = redis.call("TIME")
  local since = life:match("^%d+") / 1000
  return math.ceil(since + longest * 1.01 + 2 - time[1] * 1000 - time[2] / 1000)
end
