-- Takes the lock, or a place in the line, or says that it is there.
-- ARGV: op, inbox, live, px, member
--   op 'join'   take the lock if nobody is ahead, or queue
--      'try'    take the lock if nobody is ahead
--      'touch'  never queues: for one that may be in line already
-- Returns {1, token, deaf} granted for px; {0, ms, deaf} not yet, look again in ms at
-- the latest; {-1} not in line; {-2} given up before; {-3} the key is something else.
-- deaf is 1 if publishing was refused.
local op, inbox, live, px, member = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local id = id_of(member)

local held = redis.call('GET', LOCK)
if held then
  local who, token = holder(held)
  if not who then
    return {-3, 0, 0}
  end
  if who == id then -- granted while nobody listened, or the same request again
    redis.call('PEXPIRE', LOCK, num(px))
    return {1, tonumber(token), 0}
  end
  if op == 'try' then
    return {0, redis.call('PTTL', LOCK), 0}
  end
elseif op ~= 'touch' and redis.call('EXISTS', QUEUE, ALIVE) == 0 then
  local us = now_us()
  return {1, take(member, us, us, px), 0}
end

last_token() -- fails where it will fail later, while nothing is written
local us = now_us()
bury(us)
if op == 'touch' then
  if not redis.call('ZSCORE', ALIVE, id) or not redis.call('ZSCORE', QUEUE, member) then
    dequeue(member)
    return {-1, 0, 0}
  end
elseif redis.call('ZSCORE', ALIVE, 'x' .. id) then
  return {-2, 0, 0}
elseif op == 'try' then
  local deaf = hand_over(us, inbox)
  if not deaf then
    return {1, take(member, us, us, px), 0}
  end
  return {0, redis.call('PTTL', LOCK), deaf}
elseif not redis.call('ZSCORE', QUEUE, member) then
  enqueue(member, us)
end
beat(id, us, live)

local deaf = 0
if not held then
  if head() == member then
    return {1, grant(member, us, px), 0}
  end
  deaf = hand_over(us, inbox)
end
return {0, redis.call('PTTL', LOCK), deaf}
