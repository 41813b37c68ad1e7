-- The text of a lease, "token:holder:state:longest:attempts:metadata". Scripts read and write it
-- here, clients in lease_text.rs. The fast paths compare it with a text of the client.
--   token     fencing token of the grant
--   holder    digest of the acquisition's secret, 32 hex digits
--   state     "p" provisional: pushed to a waiter that has not confirmed it
--             "f" full, and nothing else of the resource is there
--             "w" full, and perhaps somebody waits, or is suspended, or there is a tombstone
--             "h" as "w", handed to a waiter by the answer of a release, and no request of that
--                 waiter was answered with it since
--   longest   ms: the longest time that a client was ever promised of it, from its request
--   attempts  the attempts that rely on it, joined by ","; after 128 of them "0", for all others
--
-- The key of a lease is there as long as anything else of the resource is, which keep.lua sees to.
-- So the fast paths look at this key alone. Without a lease it holds "vacant".

-- The parts of a lease, in their order. Nothing if the text is no lease.
local function read_lease(packed)
  return packed:match("^(%d+):(%x+):(%l):(%d+):([%x,]+):(.*)$")
end

local function write_lease(token, holder, state, longest, attempts, metadata)
  return token .. ":" .. holder .. ":" .. state .. ":" .. longest .. ":" .. attempts .. ":"
    .. metadata
end

-- The token and the holder that a lease begins with.
local function grant_of(beginning) return beginning:match("^(%d+):(%x+):") end
