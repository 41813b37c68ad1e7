#!lua flags=no-writes
-- Begins with shared.lua, tokens.lua, retired.lua.
--
-- Tells whether a shard is in service, and the last token that it may have issued: where counters
-- follow the clock that is the clock, because the counter may have been lost. And how often it was
-- retired or reinstated. Changes nothing.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] how often it was retired or reinstated
-- ARGV[1] where counters start: "raise" for the clock, or a token
--
-- Returns {"serving", last, told} | {"retired", last, told} | {"exhausted"}
--       | {"broken_counter", why} | {"missing"} | {"implausible", greatest}

local function standing()
  look_at_the_clock()
  local last = retired_at()
  if last then return {"retired", last, told()} end
  local counter, wrong = counter_before("", 0, true)
  if not counter then return wrong end
  return {"serving", text(counter.least), told()}
end
