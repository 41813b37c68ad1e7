-- The store rule, for the scripts that begin with it. A mark is a hash of token, holder and issuer;
-- tokens have 15 digits at most, which a Lua number holds exactly. Ends the script with a refusal.
--
-- Returns {"stale", high_water} | {"duplicate"} | {"issuer", current}

local mark = redis.call("HMGET", KEYS[1], "token", "holder", "issuer")
local presented, holder, issuer = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local high_water = tonumber(mark[1] or "0")
if mark[1] and mark[3] ~= issuer then return {"issuer", mark[3]} end
if presented < high_water then return {"stale", mark[1]} end
if presented == high_water and mark[2] ~= holder then return {"duplicate"} end
