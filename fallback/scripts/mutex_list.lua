-- Lists the holder and those who wait: see waiting.
local held = redis.call('GET', LOCK)
if not held then
  return waiting({0})
end
local token, since, member = string.match(held, '^lk1 (%d+) (%d+) (.*)$')
if not token then
  return {-1}
end
return waiting({1, token, since, redis.call('PTTL', LOCK), member, ''})
