#!lua flags=allow-oom
-- Begins with shared.lua, tokens.lua, retired.lua.
--
-- Takes a shard out of service: what stands in the place of its counter is none, so that no token
-- is drawn, and keeps the last one. Leases are not touched.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] how often it was retired or reinstated
-- ARGV[1] where counters start: "raise" for the clock, or a token
-- ARGV[2] how often that was when this was sent
--
-- Returns {"retired", last, told} | {"late"} | {"exhausted"} | {"broken_counter", why}
--       | {"missing"} | {"implausible", greatest}
--
-- Changes nothing if it comes behind another one, or behind its own first arrival.

local function retire()
  if told() ~= ARGV[2] then return {"late"} end
  look_at_the_clock()
  local last = retired_at()
  if not last then
    local counter, wrong = counter_before("", 0, true)
    if not counter then return wrong end
    last = text(counter.least)
  end
  redis.call("INCRBY", KEYS[2], "1")
  redis.call("SET", KEYS[1], "retired:" .. last)
  return {"retired", last, told()}
end
