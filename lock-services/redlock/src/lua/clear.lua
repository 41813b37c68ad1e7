#!lua
-- Deletes keys of a node that is taken in again, if it is still in this clearing.
--
-- KEYS[1] marker of the node
-- KEYS[2] first key to delete, and one key more for every further one
-- ARGV[1] marker of this clearing
--
-- Returns "cleared" | {"other", marker}: it is something else by now, or nothing
--
-- If it arrives late, it deletes nothing of a later incarnation, because every clearing has a
-- number of its own.

local marker = redis.call("GET", KEYS[1]) or ""
if marker ~= ARGV[1] then return {"other", marker} end
for i = 2, #KEYS do redis.call("UNLINK", KEYS[i]) end
return "cleared"
