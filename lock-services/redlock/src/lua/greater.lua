-- Counts are compared as decimal text, because a number of Lua is exact only up to 2^53.

local function is_greater(one, other)
  if #one ~= #other then return #one > #other end
  return one > other
end
