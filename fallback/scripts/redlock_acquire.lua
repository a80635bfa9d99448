-- Takes the lock on this server if it is free.
-- ARGV: px, young, id, owner
--   young  > 0: a server that started less than so many ms ago does not count. It says
--          when that was in whole seconds, and may be up to one ahead
-- Returns {1, token} taken for px, also by the same request before; {0, ms} another has
-- it for so long; {-2} given up before; {-3} the key is something else; {-4} too young.
local px, young, id, owner = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4]

local held = redis.call('GET', LOCK)
if held then
  local who, token = holder(held)
  if not who then
    return {-3, 0}
  end
  if who == id then
    return {1, tonumber(token)}
  end
  return {0, redis.call('PTTL', LOCK)}
end
if redis.call('ZSCORE', ALIVE, 'x' .. id) then
  return {-2, 0}
end
if young > 0 then
  local info = redis.pcall('INFO', 'server') -- may be forbidden
  local up = type(info) == 'string' and string.match(info, 'uptime_in_seconds:(%d+)')
  if up and (tonumber(up) - 1) * 1000 < young then
    return {-4, 0}
  end
end
local us = now_us()
local token = tokens(us, 0)
redis.call('SET', LOCK, 'lr1 ' .. num(token) .. ' ' .. num(us) .. ' ' .. id .. ' ' .. owner, 'PX', num(px))
return {1, token}
