-- Ends whatever a contender has: its part of the lock, or its place in the line. A
-- second time, it changes nothing. It frees first and publishes last, and takes no
-- memory before it has freed some, so that it also works on a server that is full.
-- ARGV: inbox, member, tomb, closed
--   tomb    > 0: if there is nothing yet, keep it from coming for so many ms
--   closed  > 0: the holder did not release: keep its part closed for so many ms
-- Returns {2, deaf} held, {1, deaf} waited, {0, deaf} neither, {-1, deaf} neither,
-- and it could not be kept from coming.
local inbox, member, tomb, closed = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local id, us = id_of(member), now_us()

local was, told, _ = 0, {}
local ours = open(us)
local record = ours and held(id)
if record then
  was = 2
  forget(id)
  if closed > 0 then
    local token, since, slots, of = parse(record)
    redis.call('ZADD', LOCK, num(us / 1000 + closed), '-' .. id)
    redis.call('HSET', HOLDS, '-' .. id, token .. ' ' .. since .. ' - ' .. string.gsub(of, '^%S+', '-'))
    last(closed)
    used = used + size_of(of)
  end
else
  was = dequeue(member)
  if was == 0 and tomb > 0 then
    local done = redis.pcall('ZADD', ALIVE, num(us / 1000 + tomb), 'x' .. id)
    if type(done) == 'table' and done.err then
      was = -1
    else
      keep(ALIVE, tomb)
    end
  end
end
if ours and kind then
  if redis.call('EXISTS', QUEUE) == 1 then
    bury(us)
    _, told = let_in(us)
  end
  save()
end
return {was, tell_all(inbox, told)}
