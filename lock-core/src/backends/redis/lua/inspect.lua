#!lua flags=no-writes
-- Looks at a lease. Changes nothing. The time left is told as its holder was told it.
--
-- KEYS[1] lease of the resource
--
-- Returns {"held", token, holder, left_ms} | {"free"} | {"broken"}

local lease = redis.pcall("GET", KEYS[1])
if type(lease) == "table" then return {"broken"} end
if not lease then return {"free"} end
local token, holder, expires = lease:match("^(%d+):(%x+):[%x,]+:(%d+)$")
if not token then return {"broken"} end
local time = redis.call("TIME")
local left = expires - (time[1] * 1000 + math.floor(time[2] / 1000))
if left <= 0 then return {"free"} end
return {"held", token, holder, string.format("%.0f", left - 1)}
