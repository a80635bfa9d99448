-- Prolongs holds that are still there; it never makes one, and none of the others.
-- KEYS: of each of the locks LOCK, HOLDS and, if it has slots, SLOTS. ARGV: for each of
-- them id, px; px 0 only looks. Returns for each of them 1 if it is held, or else 0.
local t = redis.call('TIME')
local ms = tonumber(t[1]) * 1000 + tonumber(t[2]) / 1000
local n = #ARGV / 2
local each = #KEYS / n
local held = {}
for i = 1, n do
  local id, px = ARGV[2 * i - 1], tonumber(ARGV[2 * i])
  local lock, holds = KEYS[(i - 1) * each + 1], KEYS[(i - 1) * each + 2]
  local ends = redis.pcall('ZSCORE', lock, id)
  held[i] = 0
  if type(ends) == 'string' and tonumber(ends) > ms and redis.pcall('HEXISTS', holds, id) == 1 then
    if px > 0 then
      -- These take no memory, and after them, a server that is full lets the next in.
      for k = (i - 1) * each + 1, i * each do
        redis.call('PEXPIRE', KEYS[k], string.format('%.0f', math.max(px, redis.call('PTTL', KEYS[k]))))
      end
      redis.call('ZADD', lock, string.format('%.0f', ms + px), id)
    end
    held[i] = 1
  end
end
return held
