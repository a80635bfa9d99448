-- Of one server of a Redlock: LOCK is a string that goes with the time to live of its
-- holder: 'lr1 token since id owner', where since is in microseconds of the server's
-- clock. Nobody waits in line; ALIVE has those who gave up before they came.
local LOCK = KEYS[1]

-- holder returns the id and the token of a value; nil for what is not ours.
local function holder(value)
  local token, id = string.match(value, '^lr1 (%d+) %d+ (%S+) ')
  return id, token
end

-- raise makes later tokens larger than this one, which another server may have given.
local function raise(token, us)
  if token > tonumber(redis.call('GET', TOKEN) or 0) then
    redis.call('SET', TOKEN, num(token), 'PX', num(math.ceil(math.max(0, token - us) / 1000) + 60000))
  end
end
