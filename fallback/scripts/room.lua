-- Of locks with room for several at a time, of whom each takes a part of its size: a
-- reader takes 1 and a writer all of it, and the holder of n permits takes n.
--   LOCK   sorted set, id -> milliseconds of the server's clock at which that hold ends,
--          with its delay: each by itself, whatever the others do
--   HOLDS  hash, id -> 'token since slots member' of those who are in LOCK, and
--          '#' -> 'lk1 kind size used'
--   SLOTS  bits, of locks that have slots: those that are taken
-- An id that begins with '-' stands for nobody: its part is closed for a while.
-- LOCK says who holds. Where the others do not agree with it, somebody has removed a
-- part of the whole, and what is not complete is forgotten: its holder is told when it
-- is to be prolonged.
local LOCK, HOLDS, SLOTS = KEYS[1], KEYS[5], KEYS[6]

local kind, size, used -- of '#', if it is there
local changed = false

-- size_of returns which part of the lock a member takes.
local function size_of(member)
  return tonumber(string.match(member, '^%S+ %d+ %d+ %d+ %S+ (%d+)'))
end

local function is_id(text)
  return string.match(text, '^%-?%x+%-%w+$')
end

local function parse(record)
  return string.match(record, '^(%d+) (%d+) (%S+) (.*)$')
end

local function each_slot(slots)
  return string.gmatch(slots, '%d+')
end

-- held returns the record of a holder; nil where there is none.
local function held(id)
  local record = redis.call('HGET', HOLDS, id)
  return record and redis.call('ZSCORE', LOCK, id) and record or nil
end

-- join is table.concat for lists of any length.
local function join(list, separator)
  local parts = {}
  for i = 1, #list, 1000 do
    parts[#parts + 1] = table.concat(list, separator, i, math.min(i + 999, #list))
  end
  return table.concat(parts, separator)
end

-- forget ends a hold. It takes no memory.
local function forget(id)
  changed = true
  redis.call('ZREM', LOCK, id)
  local record = redis.call('HGET', HOLDS, id)
  if record then
    local _, _, slots, member = parse(record)
    redis.call('HDEL', HOLDS, id)
    for slot in each_slot(slots) do
      redis.call('SETBIT', SLOTS, slot, 0)
    end
    used = used - size_of(member)
  end
end

-- mend forgets what is not complete. It returns false, and changes nothing, if one of
-- the keys is something else.
local function mend()
  local ends, records = {}, {}
  for _, id in ipairs(redis.call('ZRANGE', LOCK, 0, -1)) do
    if not is_id(id) then
      return false
    end
    ends[id] = true
  end
  local all = redis.call('HGETALL', HOLDS)
  for i = 1, #all, 2 do
    if all[i] ~= '#' then
      if not parse(all[i + 1]) then
        return false
      end
      records[all[i]] = all[i + 1]
    end
  end
  changed, used = true, 0
  for id in pairs(ends) do
    if not records[id] then
      redis.call('ZREM', LOCK, id)
    end
  end
  if SLOTS then
    redis.call('DEL', SLOTS)
  end
  for id, record in pairs(records) do
    local _, _, slots, member = parse(record)
    if ends[id] then
      used = used + size_of(member)
      for slot in each_slot(slots) do
        redis.call('SETBIT', SLOTS, slot, 1)
      end
    else
      redis.call('HDEL', HOLDS, id)
    end
  end
  return true
end

-- open reads what is known of the lock, and forgets the holds whose time is over. It
-- returns false if one of the keys is something else. Call save at the end.
local function open(us)
  local about, n = redis.pcall('HGET', HOLDS, '#'), redis.pcall('ZCARD', LOCK)
  if type(about) == 'table' or type(n) == 'table' then
    return false
  end
  if about then
    kind, size, used = string.match(about, '^lk1 (%S+) (%d+) (%d+)$')
    if not kind then
      return false
    end
    size, used = tonumber(size), tonumber(used)
  end
  local complete = redis.call('HLEN', HOLDS) == (about and n + 1 or n)
  if complete and SLOTS then
    complete = redis.call('BITCOUNT', SLOTS) == (used or 0)
  end
  if not (complete and (about or n == 0)) and not mend() then
    return false
  end
  used = used or 0
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', LOCK, '-inf', num(us / 1000))) do
    forget(id)
  end
  return true
end

-- save writes down what has changed.
local function save()
  if not changed then
    return
  end
  if redis.call('EXISTS', LOCK, QUEUE) == 0 then
    redis.call('DEL', HOLDS)
    if SLOTS then
      redis.call('DEL', SLOTS)
    end
  elseif kind then
    redis.call('HSET', HOLDS, '#', 'lk1 ' .. kind .. ' ' .. num(size) .. ' ' .. num(used))
    keep(HOLDS, 1000) -- never for ever
    if SLOTS then
      keep(SLOTS, redis.call('PTTL', HOLDS))
    end
  end
end

-- fits reports whether there is room for member.
local function fits(member)
  return used + size_of(member) <= size
end

-- last keeps the keys for as long as a hold is there.
local function last(px)
  keep(LOCK, px)
  keep(HOLDS, px)
  if SLOTS then
    keep(SLOTS, px)
  end
end

-- seat takes the lowest n free slots.
local function seat(n)
  local slots = {}
  if SLOTS then
    for i = 1, n do
      slots[i] = redis.call('EXISTS', SLOTS) == 1 and redis.call('BITPOS', SLOTS, 0) or 0
      redis.call('SETBIT', SLOTS, slots[i], 1)
    end
  end
  return slots
end

-- admit makes member a holder for px milliseconds. It returns its token and its slots.
-- under is the token of the one under which it comes in, if it does.
local function admit(member, us, since, px, under)
  local id = id_of(member)
  local token, slots = under or tokens(us, 0), seat(size_of(member))
  local list = #slots > 0 and join(slots, ',') or '-'
  redis.call('ZADD', LOCK, num(us / 1000 + px), id)
  redis.call('HSET', HOLDS, id, num(token) .. ' ' .. num(since) .. ' ' .. list .. ' ' .. member)
  last(px)
  used, changed = used + size_of(member), true
  return {token = token, slots = slots}
end

-- let_in makes holders of the first in line for whom there is room, all of them: one
-- like self for px milliseconds, and others for as long as it may take them to say that
-- they are there. It returns what admit did for self, and those who are to be told.
local function let_in(us, self, px)
  local granted, told = nil, {}
  while true do
    local member = head()
    if not member or not fits(member) then
      return granted, told
    end
    local since = tonumber(redis.call('ZSCORE', QUEUE, member))
    local id, claim = string.match(member, '^(%S+) (%d+)')
    dequeue(member)
    if member == self then
      granted = admit(member, us, since, px)
    else
      told[#told + 1] = {id = id, claim = claim, got = admit(member, us, since, tonumber(claim))}
    end
  end
end

-- tell_all comes last. It returns 1 if publishing was refused.
local function tell_all(inbox, told)
  local deaf = 0
  for _, t in ipairs(told) do
    local slots = #t.got.slots > 0 and ' ' .. join(t.got.slots, ' ')
    deaf = math.max(deaf, tell(inbox, t.id, t.got.token, t.claim, slots))
  end
  return deaf
end
