-- Prolongs locks that are still held by those who ask; it never makes one.
-- KEYS: the keys of the locks. ARGV: for each of them id, px; px 0 only looks.
-- Returns for each of them 1 if it is held, or else 0.
local held = {}
for i, key in ipairs(KEYS) do
  local value, px = redis.pcall('GET', key), tonumber(ARGV[2 * i])
  held[i] = 0
  if type(value) == 'string' and string.match(value, '^lk1 %d+ %d+ (%S+) ') == ARGV[2 * i - 1] then
    if px > 0 then
      redis.call('PEXPIRE', key, ARGV[2 * i])
    end
    held[i] = 1
  end
end
return held
