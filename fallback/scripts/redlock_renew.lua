-- Prolongs the lock on this server if it is still held; it never makes one.
-- ARGV: id, px, token; px 0 only looks.
-- Returns {1} if it is held, or else {0}.
local held = redis.call('GET', LOCK)
if not held or holder(held) ~= ARGV[1] then
  return {0}
end
if tonumber(ARGV[2]) > 0 then
  redis.call('PEXPIRE', LOCK, ARGV[2])
  raise(tonumber(ARGV[3]), now_us())
end
return {1}
