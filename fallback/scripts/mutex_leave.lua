-- Ends whatever a contender has: the lock, or its place in the line. A second time,
-- it changes nothing. It frees first and publishes last, and takes no memory before
-- it has freed some, so that it also works on a server that is full.
-- ARGV: inbox, member, tomb, closed
--   tomb    > 0: if there is nothing yet, keep it from coming for so many ms
--   closed  > 0: the holder did not release: keep the lock closed for so many ms
-- Returns {2, deaf} held, {1, deaf} waited, {0, deaf} neither, {-1, deaf} neither,
-- and it could not be kept from coming.
local inbox, member, tomb, closed = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local id = id_of(member)

local was, deaf = 0, 0
local held = redis.pcall('GET', LOCK)
if type(held) == 'string' and holder(held) == id then
  redis.call('DEL', LOCK)
  if closed > 0 then
    local value = string.gsub(held, '^(lk1 %d+ %d+) %S+', '%1 -')
    redis.call('SET', LOCK, value, 'PX', num(closed))
    return {2, 0}
  end
  was, held = 2, false
else
  was = dequeue(member)
  if was == 0 and tomb > 0 then
    local done = redis.pcall('ZADD', ALIVE, num(now_us() / 1000 + tomb), 'x' .. id)
    if type(done) == 'table' and done.err then
      was = -1
    else
      keep(ALIVE, tomb)
    end
  end
end
if not held and redis.call('EXISTS', QUEUE) == 1 then
  local us = now_us()
  bury(us)
  deaf = hand_over(us, inbox) or 0
end
return {was, deaf}
