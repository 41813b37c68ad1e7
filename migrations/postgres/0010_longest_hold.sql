-- THE LONGEST HOLD
--
-- fenced.state_longest_hold counts for all marks, and it only rises. With it a role keeps idle
-- marks from being forgotten for up to 366 days. So only the owner may call it; grant EXECUTE to
-- the role of a client that claims by hand and holds for more than an hour.

revoke all on function fenced.state_longest_hold from public;
