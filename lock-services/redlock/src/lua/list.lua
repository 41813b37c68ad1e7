#!lua flags=no-writes
-- Begins with serving.lua.
--
-- Lists a page of the counters of a node. It has a counter of each resource that it has granted.
--
-- KEYS[1] marker of the node
-- ARGV[1] incarnation in which the list was begun
-- ARGV[2] cursor: 0 for the first page
-- ARGV[3] pattern of the keys of counters
-- ARGV[4] about how many keys to look at
--
-- Returns {"listed", cursor, key, ..}, the last page with cursor 0 | "other_incarnation"
--       | {"no_state"} | {"not_serving", marker}
--
-- A key that existed at the first page and was not deleted is on at least one page, perhaps several
-- times.

local incarnation, wrong = serving(redis.call("GET", KEYS[1]))
if not incarnation then return wrong end
if incarnation ~= ARGV[1] then return "other_incarnation" end
local page = redis.call("SCAN", ARGV[2], "MATCH", ARGV[3], "COUNT", ARGV[4])
return {"listed", page[1], unpack(page[2])}
