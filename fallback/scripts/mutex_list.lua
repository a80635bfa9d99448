-- Returns the holder's value or '', its PTTL, and then member and score of each that
-- waits and lives.
local held = redis.call('GET', LOCK)
local list = {held or '', redis.call('PTTL', LOCK)}
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
