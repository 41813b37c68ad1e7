#!lua flags=no-writes
-- Begins with serving.lua.
--
-- Lists a page of the leases of a node. Some of them may have ended.
--
-- KEYS[1] marker of the node
-- ARGV[1] cursor: 0 for the first page
-- ARGV[2] pattern of the keys of leases
-- ARGV[3] about how many keys to look at
--
-- Returns {"listed", cursor, key, ..}, the last page with cursor 0
--       | {"no_state"} | {"not_serving", marker}
--
-- A key that existed at the first page and was not deleted is on at least one page, perhaps several
-- times.

local incarnation, wrong = serving(redis.call("GET", KEYS[1]))
if not incarnation then return wrong end
local page = redis.call("SCAN", ARGV[1], "MATCH", ARGV[2], "COUNT", ARGV[3])
return {"listed", page[1], unpack(page[2])}
