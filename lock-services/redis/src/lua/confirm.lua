#!lua flags=allow-oom
-- Begins with lease.lua, keys.lua, shared.lua, keep.lua, tokens.lua, queue.lua.
--
-- Makes a provisional lease full, because its holder is present. The holder's place in the queue is
-- given up.
--
-- KEYS[1] token counter of the shard
-- KEYS[2] lease of the resource
-- ARGV[1] where counters start, not used here
-- ARGV[2] holder
-- ARGV[3] token
-- ARGV[4] ttl in ms
--
-- Returns "renewed" | "not_holder" | "broken"
--
-- Idempotent: a full lease is renewed.

local function confirm()
  look()
  if foreign then return "broken" end
  if not lease or lease.holder ~= ARGV[2] or lease.token ~= ARGV[3] or lease.left <= 0 then
    return "not_holder"
  end
  if lease.state == "p" then leave(lease.holder) end
  lease.state = "f"
  extend(lease, ARGV[4])
  finish()
  return "renewed"
end
