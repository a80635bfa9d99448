-- Shared by all locks that serve in order of arrival: time, tokens, and the line.
--
-- Every key of a lock is declared and lies in one slot:
--   TOKEN  the last fencing token given out; goes by itself
--   QUEUE  sorted set of those who wait: member -> microseconds of arrival, made unique
--   ALIVE  sorted set, id -> milliseconds at which its owner counts as dead, unless it
--          is heard of before; and 'x' .. id for those who gave up before they came
-- A member is all that must be known of a waiter: 'id claim more delay mode size owner'.
-- where claim is for how many milliseconds it gets the lock while it does not know yet,
-- and more is how many tokens beyond the first it takes.
local TOKEN, QUEUE, ALIVE = KEYS[2], KEYS[3], KEYS[4]

local function id_of(member)
  return string.match(member, '^(%S+)')
end

-- Lua's own conversion would write large numbers with an exponent.
local function num(n)
  return string.format('%.0f', n)
end

-- Always the server's clock, never a client's.
local function now_us()
  local t = redis.call('TIME')
  return tonumber(t[1]) * 1000000 + tonumber(t[2])
end

-- keep makes a key last for ms at least.
local function keep(key, ms)
  if redis.call('PTTL', key) < ms then
    redis.call('PEXPIRE', key, num(ms))
  end
end

local function last_token()
  return tonumber(redis.call('GET', TOKEN) or 0) or error('WRONGTYPE ' .. TOKEN .. ' is no counter')
end

-- tokens gives out a token and reserves that many more behind it. They are
-- microseconds of the server's clock, or follow on the last one where the clock
-- went back. The counter lasts until the clock has passed it by a minute, so
-- that there is no key for ever, and no token twice.
local function tokens(us, more)
  local last = last_token()
  local first = math.max(last + 1, us)
  last = first + more
  redis.call('SET', TOKEN, num(last), 'PX', num(math.ceil(math.max(0, last - us) / 1000) + 60000))
  return first
end

-- bury forgets all who have not been heard of in time.
local function bury(us)
  redis.call('ZREMRANGEBYSCORE', ALIVE, '-inf', num(us / 1000))
end

-- beat says that a waiter lives.
local function beat(id, us, live)
  redis.call('ZADD', ALIVE, num(us / 1000 + live), id)
  keep(ALIVE, 2 * live)
  keep(QUEUE, 2 * live)
end

-- enqueue puts a waiter at the tail.
local function enqueue(member, us)
  local tail = redis.call('ZRANGE', QUEUE, -1, -1, 'WITHSCORES')[2]
  redis.call('ZADD', QUEUE, num(math.max(us, tail and tonumber(tail) + 1 or 0)), member)
end

local function dequeue(member)
  redis.call('ZREM', ALIVE, id_of(member))
  return redis.call('ZREM', QUEUE, member)
end

-- head returns the first waiter that lives. Those before it are dead: they cost
-- nobody any time, however many they are. Call bury before.
local function head()
  while true do
    local member = redis.call('ZRANGE', QUEUE, 0, 0)[1]
    if not member or redis.call('ZSCORE', ALIVE, id_of(member)) then
      return member
    end
    redis.call('ZREM', QUEUE, member)
  end
end

-- tell says to the client of a waiter that it was granted, with whatever else the lock
-- tells its holders: numbers with a space before each. It comes last and may fail: then
-- it returns 1, and the waiter finds out by itself.
local function tell(inbox, id, token, claim, further)
  local text = id .. ' ' .. num(token) .. ' ' .. claim .. (further or '')
  local done = redis.pcall('PUBLISH', inbox .. string.match(id, '^(%x+)'), text)
  return type(done) == 'table' and done.err and 1 or 0
end

-- waiting completes the reply of a script that lists a lock: how many hold it; of each
-- token, time of arrival, milliseconds left with its delay, member, and its slots with
-- commas between; then member and time of arrival of each that waits and lives. A
-- single -1 says that the key is something else.
local function waiting(list)
  local ms = now_us() / 1000
  local line = redis.call('ZRANGE', QUEUE, 0, -1, 'WITHSCORES')
  for i = 1, #line, 2 do
    local dead = redis.call('ZSCORE', ALIVE, id_of(line[i]))
    if dead and tonumber(dead) > ms then
      list[#list + 1] = line[i]
      list[#list + 1] = line[i + 1]
    end
  end
  return list
end
