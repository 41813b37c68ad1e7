-- The text of a lease, "token:holder:state:longest:attempts:metadata". Scripts read and write it
-- here, and clients in lease_text.rs. The fast paths compare it with a text of the client.
--   token     fencing token of the grant
--   holder    digest of the acquisition's secret, 32 hex digits
--   state     "p" provisional: pushed to a waiter that has not confirmed it
--             "f" full, and no other key of the resource exists
--             "w" full, and there may be waiters, suspended waiters or tombstones
--             "h" as "w", handed to a waiter by the answer to a release, and no request of that
--                 waiter has got it in an answer since
--   longest   ms: the longest time that a client was ever promised, counted from its request
--   attempts  the attempts that rely on the lease, joined by ","; after 128 of them "0" for others
--
-- The key of a lease exists as long as any other key of the resource, by keep.lua. So the fast
-- paths look only at this key. Without a lease it holds "vacant".

-- The parts of a lease, in their order. Nil if the text is no lease.
local function read_lease(packed)
  return packed:match("^(%d+):(%x+):(%l):(%d+):([%x,]+):(.*)$")
end

local function write_lease(token, holder, state, longest, attempts, metadata)
  return token .. ":" .. holder .. ":" .. state .. ":" .. longest .. ":" .. attempts .. ":"
    .. metadata
end

-- The token and the holder at the beginning of a lease.
local function grant_of(beginning) return beginning:match("^(%d+):(%x+):") end
