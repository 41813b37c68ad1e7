#!lua flags=allow-oom
-- Begins with shared.lua, tokens.lua, retired.lua.
--
-- Takes a shard out of service: what stands in the place of its counter is none, so that no token
-- is drawn, and keeps the last one. Leases are not touched.
--
-- KEYS[1] token counter of the shard
-- ARGV[1] where counters start: "raise" for the clock, or a token
--
-- Returns {"retired", last} | {"exhausted"} | {"broken_counter", why} | {"missing"}
--       | {"implausible", greatest}
--
-- Idempotent.

local function retire()
  look_at_the_clock()
  local last = retired_at()
  if last then return {"retired", last} end
  local counter, wrong = counter_before("", 0, true)
  if not counter then return wrong end
  last = text(counter.least)
  redis.call("SET", KEYS[1], "retired:" .. last)
  return {"retired", last}
end
