#!lua
-- Begins with shared.lua, tokens.lua, retired.lua.
--
-- Puts a shard into service, or lifts one that is: every token from then on is at least the floor,
-- and greater than all before.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] how often it was retired or reinstated
-- ARGV[1] where counters start: "raise" for the clock, or a token
-- ARGV[2] how often that was when this was sent
-- ARGV[3] floor
--
-- Returns {"serving", last, told} | {"late"} | {"exhausted"} | {"broken_counter", why}
--       | {"missing"} | {"implausible", greatest} | {"retired"}
--
-- Changes nothing if it comes behind another one, or behind its own first arrival.

local function reinstate()
  if told() ~= ARGV[2] then return {"late"} end
  look_at_the_clock()
  local last, wrong = retired_at(), nil
  if last then
    last, wrong = lifted(tonumber(last), ARGV[3])
  else
    local counter
    counter, wrong = counter_before(ARGV[3], 0, true)
    last = counter and counter.least
  end
  if not last then return wrong end
  redis.call("INCRBY", KEYS[2], "1")
  redis.call("SET", KEYS[1], text(last))
  return {"serving", text(last), told()}
end
