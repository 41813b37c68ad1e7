#!lua
-- Begins with shared.lua, tokens.lua, retired.lua.
--
-- Puts a shard into service, or lifts one that is: every token from then on is at least the floor,
-- and greater than all before.
--
-- KEYS[1] token counter of the shard
-- ARGV[1] where counters start: "raise" for the clock, or a token
-- ARGV[2] floor
--
-- Returns {"serving", last} | {"exhausted"} | {"broken_counter", why} | {"missing"}
--       | {"implausible", greatest} | {"retired"}
--
-- Idempotent.

local function reinstate()
  look_at_the_clock()
  local last, wrong = retired_at(), nil
  if last then
    last, wrong = lifted(tonumber(last), ARGV[2])
  else
    local counter
    counter, wrong = counter_before(ARGV[2], 0, true)
    last = counter and counter.least
  end
  if not last then return wrong end
  redis.call("SET", KEYS[1], text(last))
  return {"serving", text(last)}
end
