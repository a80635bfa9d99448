-- Gives the lock back on this server. A second time, it changes nothing. It frees first,
-- so that it also works on a server that is full.
-- ARGV: -, member, tomb, -
--   member  'id token': the token that the holder had, over all servers, or 0
--   tomb    > 0: if there is nothing yet, keep it from coming for so many ms
-- Returns {2, 0} held, {0, 0} not, {-1, 0} not, and it could not be kept from coming.
local id, token = string.match(ARGV[2], '^(%S+) (%d+)$')
local tomb = tonumber(ARGV[3])

local us = now_us()
local held = redis.pcall('GET', LOCK)
if type(held) == 'string' and holder(held) == id then
  redis.call('DEL', LOCK)
  raise(tonumber(token), us)
  return {2, 0}
end
if tomb > 0 then
  bury(us)
  local done = redis.pcall('ZADD', ALIVE, num(us / 1000 + tomb), 'x' .. id)
  if type(done) == 'table' and done.err then
    return {-1, 0}
  end
  keep(ALIVE, tomb)
end
return {0, 0}
