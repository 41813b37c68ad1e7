-- Drawing tokens. For scripts whose
--   KEYS[1]  is the token counter of the shard
--   ARGV[1]  says where counters start: "clock", "raise" to lift them to it first, or a token

local function clock() return time[1] * 100000 + math.floor(time[2] / 10) end

-- The value of the counter with which the next token is at least `floor`, or nil and the answer
-- with the reason.
local function lifted(counter, floor)
  local initial = tonumber(ARGV[1])
  if ARGV[1] == "raise" then counter = math.max(counter, clock()) end
  floor = tonumber(floor)
  if floor and floor - 1 > counter then
    local greatest = initial and counter + MAX_JUMP or clock() + MAX_LEAD
    greatest = math.min(greatest, TOKEN_MAX)
    if floor > greatest then return nil, {"implausible", text(greatest)} end
    counter = floor - 1
  end
  return counter
end

-- The counter as it has to be before `many` tokens are drawn, or nil and the answer with the
-- reason. With `start` a missing counter begins. Changes nothing.
local function counter_before(floor, many, start)
  local stored = redis.pcall("GET", KEYS[1])
  if type(stored) == "table" then return nil, {"broken_counter", "its key holds something else"} end
  if not stored and not start then return nil, {"missing"} end
  if stored and (#stored > 15 or not stored:match("^%d+$")) then
    return nil, {"broken_counter", "it is not a whole number of at most 15 digits"}
  end
  if stored and redis.call("PTTL", KEYS[1]) ~= -1 then
    return nil, {"broken_counter", "it has a time to live and would be lost"}
  end
  local counter = tonumber(stored) or (tonumber(ARGV[1]) or clock()) - 1
  local least, wrong = lifted(counter, floor)
  if not least then return nil, wrong end
  if least + many > TOKEN_MAX then return nil, {"exhausted"} end
  return {least = least, lift = not stored or least > counter, first = text(least + 1)}
end

-- Draws tokens and returns the first. An error does not roll back, so this comes before the lease
-- is written. In the worst case tokens are drawn and lost.
local function draw(counter, many)
  if counter.lift then redis.call("SET", KEYS[1], text(counter.least)) end
  redis.call("INCRBY", KEYS[1], many)
  return counter.first
end
