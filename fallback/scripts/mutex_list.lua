-- Lists the holder and those who wait: see waiting.
local held = redis.pcall('GET', LOCK)
if type(held) == 'table' then
  return {-1}
end
if not held then
  return waiting({0})
end
local token, since, member = string.match(held, '^lk1 (%d+) (%d+) (.*)$')
if not token then
  return {-1}
end
return waiting({1, token, since, redis.call('PTTL', LOCK), member, ''})
