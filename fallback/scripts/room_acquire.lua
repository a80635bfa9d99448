-- Takes a part of the lock, or a place in the line, or says that it is there.
-- ARGV: op, inbox, live, px, member, kind, size, under
--   op 'join'   take it if it fits and nobody is ahead, or queue
--      'try'    take it if it fits and nobody is ahead
--      'touch'  never queues: for one that may be in line already
--   under       the id of a holder under whom it comes in, whoever is ahead; or ''
-- Returns {1, token, deaf, slot, …} granted for px; {0, ms, deaf} not yet, look again in
-- ms at the latest; {-1} not in line; {-2} given up before; {-3, size} the key is
-- something else, or has that size; {-4} the holder is gone.
-- deaf is 1 if publishing was refused.
local op, inbox, live, px, member = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]
local id, under, us = id_of(member), ARGV[8], now_us()

-- done writes down what has changed, tells those who were let in, and makes the reply.
local function done(what, value, told)
  save()
  local deaf = tell_all(inbox, told or {})
  if what ~= 1 then
    return {what, value or 0, deaf}
  end
  local reply = {1, value.token, deaf}
  for i, slot in ipairs(value.slots) do
    reply[3 + i] = slot
  end
  return reply
end

-- not_yet says when the next hold ends unless it is prolonged.
local function not_yet(told)
  local first = redis.call('ZRANGE', LOCK, 0, 0, 'WITHSCORES')[2]
  return done(0, first and math.max(0, math.ceil(tonumber(first) - us / 1000)) or live, told)
end

if not open(us) then
  return {-3, 0, 0}
end

local record = held(id)
if record then -- granted while nobody listened, or the same request again
  local token, _, slots = parse(record)
  local got = {token = tonumber(token), slots = {}}
  for slot in each_slot(slots) do
    got.slots[#got.slots + 1] = tonumber(slot)
  end
  last(px)
  redis.call('ZADD', LOCK, num(us / 1000 + px), id)
  return done(1, got)
end

local queues = redis.call('EXISTS', QUEUE, ALIVE) > 0
if queues then
  bury(us)
end
if op ~= 'touch' and redis.call('ZSCORE', ALIVE, 'x' .. id) then
  return done(-2)
end
if op ~= 'touch' and under ~= '' then
  record = held(under)
  if not record then
    return done(-4)
  end
  return done(1, admit(member, us, us, px, tonumber((parse(record)))))
end

local first = queues and head()
if kind and (kind ~= ARGV[6] or size ~= tonumber(ARGV[7])) and (used > 0 or first) then
  return done(-3, kind == ARGV[6] and size or 0)
end
kind, size = ARGV[6], tonumber(ARGV[7])

if op == 'touch' then
  if not redis.call('ZSCORE', ALIVE, id) or not redis.call('ZSCORE', QUEUE, member) then
    dequeue(member)
    return done(-1)
  end
elseif not first and fits(member) then
  return done(1, admit(member, us, us, px))
elseif op == 'try' then
  local _, told = let_in(us)
  if not head() and fits(member) then
    return done(1, admit(member, us, us, px), told)
  end
  return not_yet(told)
elseif not redis.call('ZSCORE', QUEUE, member) then
  enqueue(member, us)
end
beat(id, us, live)
keep(HOLDS, 2 * live)

local granted, told = let_in(us, member, px)
if granted then
  return done(1, granted, told)
end
return not_yet(told)
