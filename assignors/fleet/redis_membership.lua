-- One step of a fleet's membership, atomic on the server: say that an agent lives, and read who does.
-- KEYS[1] the index (a hash): "view" -> the newest view, "agent:<id>" -> attributes, last beat and owner.
-- KEYS[2] the beat of this agent (text with a time to live): the process that speaks for the id.
-- ARGV: operation (beat, look, leave), id, attributes, process, lease ms, grace ms, the caller's newest view or "".
-- Time is the server's own; no client's clock is asked.
local index, beat = KEYS[1], KEYS[2]
local operation, id, attributes, process = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local lease, grace, most = tonumber(ARGV[5]), tonumber(ARGV[6]), 64
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local prefix = string.sub(beat, 1, #beat - #id)

local known = redis.call('HGET', index, 'view')
local view = known and cjson.decode(known) or nil
if ARGV[7] ~= '' and operation == 'beat' then
  local told = cjson.decode(ARGV[7])
  if not view or told.version > view.version then
    -- Views are made here alone, so the server has forgotten them all, whoever has spoken since. The members of the
    -- caller's view have a session's time to say that they live.
    for _, one in ipairs(told.members) do
      local fresh = cjson.encode({attributes = cjson.encode(one), beat = now, process = ''})
      redis.call('HSETNX', index, 'agent:' .. one.id, fresh)
    end
    view = told
  end
end
view = view or {members = {}, version = 0, departed = {}}

local agents, newest = {}, 0
local all = redis.call('HGETALL', index)
for at = 1, #all, 2 do
  local name = string.match(all[at], '^agent:(.*)$')
  if name then
    agents[name] = cjson.decode(all[at + 1])
    newest = math.max(newest, agents[name].beat)
  end
end
if operation == 'beat' and now - newest > lease then
  -- No agent spoke for this long: the server was away and is back with its data. All get a session's time again.
  for name, one in pairs(agents) do
    one.beat = now
    redis.call('HSET', index, 'agent:' .. name, cjson.encode(one))
  end
end

local refused = ''
if operation == 'beat' then
  local owner = redis.call('GET', beat)
  if owner and owner ~= process then
    refused = owner
  else
    redis.call('SET', beat, process, 'PX', lease)
    agents[id] = {attributes = attributes, beat = now, process = process}
    redis.call('HSET', index, 'agent:' .. id, cjson.encode(agents[id]))
  end
elseif operation == 'leave' and redis.call('GET', beat) == process then
  redis.call('DEL', beat)
  redis.call('HDEL', index, 'agent:' .. id)
  agents[id] = nil
end

local living, beats, ids = {}, {}, {}
for name, found in pairs(agents) do
  if now - found.beat > lease + grace and redis.call('EXISTS', prefix .. name) == 0 then
    if operation ~= 'look' then redis.call('HDEL', index, 'agent:' .. name) end
  else
    living[name] = cjson.decode(found.attributes)
    beats[#beats + 1] = name
    beats[#beats + 1] = tostring(now - found.beat)
    ids[#ids + 1] = name
  end
end
table.sort(ids)

local before, changed = {}, #ids ~= #view.members
for _, one in ipairs(view.members) do before[one.id] = one end
for _, name in ipairs(ids) do
  local old, new = before[name], living[name]
  -- The view holds 14 digits of a number: compared as it holds them, or 1/3 would be a new capacity at every beat.
  local same = old and cjson.encode(old.capacity) == cjson.encode(new.capacity) and old.zone == new.zone
    and cjson.encode(old.settings) == cjson.encode(new.settings)
  if not same then changed = true end
end
if changed or not known then
  local members, departed = {}, {}
  for _, name in ipairs(ids) do members[#members + 1] = living[name] end
  for _, one in ipairs(view.departed or {}) do
    if not living[one.id] then departed[#departed + 1] = one end
  end
  for _, one in ipairs(view.members) do
    if not living[one.id] then departed[#departed + 1] = one end
  end
  while #departed > most do table.remove(departed, 1) end
  view = {members = members, departed = departed, version = view.version + 1}
end
local text = cjson.encode(view)
if text ~= known and operation ~= 'look' then redis.call('HSET', index, 'view', text) end
return {text, refused, beats}
