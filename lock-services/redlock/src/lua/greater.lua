-- Counts as decimal text: a number of Lua is exact up to 2^53 only.

local function is_greater(one, other)
  if #one ~= #other then return #one > #other end
  return one > other
end
