-- Of the mutex: LOCK is a string that goes with the time to live of its holder:
-- 'lk1 token since member', where since is in microseconds of the server's clock.
-- The id '-' stands for nobody: the lock is closed for a while.
local LOCK = KEYS[1]

-- holder returns the id and token of a value; nil for what is not ours.
local function holder(value)
  local token, id = string.match(value, '^lk1 (%d+) %d+ (%S+) ')
  return id, token
end

-- take makes member the holder for px milliseconds.
local function take(member, us, since, px)
  local token = tokens(us, tonumber(string.match(member, '^%S+ %d+ (%d+)')))
  redis.call('SET', LOCK, 'lk1 ' .. num(token) .. ' ' .. num(since) .. ' ' .. member, 'PX', num(px))
  return token
end

-- grant makes a waiter the holder.
local function grant(member, us, px)
  local since = tonumber(redis.call('ZSCORE', QUEUE, member))
  dequeue(member)
  return take(member, us, since, px)
end

-- hand_over gives the free lock to the first that waits, if somebody does, for as
-- long as it may take it to say that it is there. It returns what tell does.
local function hand_over(us, inbox)
  local member = head()
  if not member then
    return nil
  end
  local id, claim = string.match(member, '^(%S+) (%d+)')
  return tell(inbox, id, grant(member, us, tonumber(claim)), claim)
end
