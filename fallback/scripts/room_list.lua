-- Lists those who hold and those who wait: see waiting. It changes nothing.
local about, line = redis.pcall('HGET', HOLDS, '#'), redis.pcall('ZRANGE', LOCK, 0, -1, 'WITHSCORES')
if type(about) == 'table' or line.err or about and not string.match(about, '^lk1 ') then
  return {-1}
end
local ms, held = now_us() / 1000, {}
for i = 1, #line, 2 do
  if not is_id(line[i]) then
    return {-1}
  end
  local record, left = redis.call('HGET', HOLDS, line[i]), tonumber(line[i + 1]) - ms
  if record and left > 0 then
    local token, since, slots, member = parse(record)
    if not token then
      return {-1}
    end
    held[#held + 1] = {since = tonumber(since), rank = tonumber(token), row = {token, since, math.ceil(left), member, slots}}
  end
end
table.sort(held, function(a, b)
  if a.since ~= b.since then
    return a.since < b.since
  end
  return a.rank < b.rank
end)
local list = {#held}
for _, h in ipairs(held) do
  for _, v in ipairs(h.row) do
    list[#list + 1] = v
  end
end
return waiting(list)
