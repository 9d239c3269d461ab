"""The page: one file, without a build step and external resources. It requests the status every two seconds."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>azimuth agent</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --muted: #5d6b7e; --line: #dfe4ea; --card: #f6f8fa; --paper: #fff;
  --own: #2b6cb0; --other: #b9cfe6; --bad: #b3261e; --good: #1b7f4b; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --muted: #9aa7b7; --line: #2c3540; --card: #1b222b;
  --paper: #12171d; --own: #63a4e8; --other: #2f4a66; --bad: #ff8a80; --good: #6fd19b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1100px; padding: 24px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
body.away > * { opacity: .45; } body.away > h1, body.away > #standing { opacity: 1; }
h1, #standing, .problems { overflow-wrap: anywhere; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 28px 0 8px; }
.muted { color: var(--muted); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(130px, 1fr)); gap: 10px; margin: 18px 0 0; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 10px 14px; }
.tile b { display: block; font-size: 22px; font-variant-numeric: tabular-nums; }
.tile span { color: var(--muted); font-size: 13px; }
ul.problems { padding: 10px 14px 10px 30px; border: 1px solid var(--bad); border-radius: 8px; color: var(--bad);
  max-height: 220px; overflow: auto; }
.scroll { max-height: 560px; overflow: auto; border: 1px solid var(--line); border-radius: 8px; }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { padding: 3px 10px; text-align: left; white-space: nowrap; }
/* Names may be as long as Kafka allows: cut, and whole where the pointer rests. */
th, td.name { overflow: hidden; text-overflow: ellipsis; max-width: 16ch; }
td.name { max-width: min(40ch, 44vw); }
thead th { position: sticky; top: 0; z-index: 1; background: var(--card); border-bottom: 1px solid var(--line); }
td:first-child, th:first-child { position: sticky; left: 0; background: var(--paper); }
th:first-child { z-index: 2; background: var(--card); }
td.seat { min-width: 46px; border-left: 1px solid var(--paper); border-top: 1px solid var(--paper); }
td.seat.reads { background: var(--other); } td.seat.mine { background: var(--own); }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
.dot { display: inline-block; width: 10px; height: 10px; border-radius: 50%; background: var(--bad);
  margin-right: 6px; }
.dot.good { background: var(--good); }
.keys { white-space: nowrap; }
.key { display: inline-block; width: 12px; height: 12px; border-radius: 2px; margin: 0 5px -1px 12px;
  background: var(--other); }
.key.mine { background: var(--own); }
</style>
</head>
<body>
<h1><span id="dot" class="dot"></span><span id="name">...</span></h1>
<div id="standing" class="muted">waiting for the first answer</div>
<p><a href="fleet" class="muted">the page of the whole fleet</a></p>
<div id="problems"></div>
<div id="tiles" class="tiles"></div>
<h2>Who reads what
  <span class="muted keys"><span class="key mine"></span>this agent<span class="key"></span>another</span></h2>
<div class="scroll"><table><thead id="agents"></thead><tbody id="topics"></tbody></table></div>
<h2>Living agents</h2>
<div class="scroll"><table><thead><tr><th>agent</th><th>zone</th><th>capacity</th><th>topics</th></tr></thead>
<tbody id="members"></tbody></table></div>
<script>
const byId = (id) => document.getElementById(id);
const cell = (tag, text, kind) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const named = (tag, text) => { const made = cell(tag, text, "name"); made.title = text; return made; };
const short = new Intl.NumberFormat("en", { notation: "compact", maximumSignificantDigits: 4 });
const MOST = 20;
const row = (...cells) => { const made = document.createElement("tr"); made.append(...cells); return made; };
const number = (value) => Number(value).toLocaleString("en");
const size = (bytes) => {
  const steps = ["B", "kB", "MB", "GB", "TB"];
  const step = bytes < 1 ? 0 : Math.min(Math.floor(Math.log10(bytes) / 3), steps.length - 1);
  return (bytes / 1000 ** step).toPrecision(3) + " " + steps[step];
};
const crossed = (c) => c.bytes === undefined ? [] : [
  ["from other zones (" + Math.round(c.share * 100) + " %)", size(c.bytes)],
  ["money an hour for them", c.cost_per_hour.toLocaleString("en", { maximumSignificantDigits: 3 })]];
function show(s) {
  byId("name").textContent = s.agent.id;
  document.title = s.agent.id + " - azimuth";
  document.body.className = "";
  byId("dot").className = s.unready || s.problems.length ? "dot" : "dot good";
  byId("standing").textContent = s.standing + (s.unready ? ", not ready" : "")
    + (s.agent.zone ? ", zone " + s.agent.zone : "") + (s.view ? ", view " + s.view.version : "")
    + ", " + new Date(s.at * 1000).toLocaleTimeString();
  const problems = s.problems.length ? cell("ul", undefined, "problems") : cell("div");
  for (const one of s.problems.slice(0, MOST)) problems.append(cell("li", one));
  if (s.problems.length > MOST) problems.append(cell("li", "and " + (s.problems.length - MOST) + " more"));
  byId("problems").replaceChildren(problems);
  const lags = Object.values(s.lag || {}), behind = lags.reduce((a, b) => a + b, 0);
  const unknown = s.topics.filter((topic) => (s.lag || {})[topic] === undefined).length;
  const tiles = [["topics here", s.topics.length], ["lanes", s.lanes], ["consumers", s.consumers], ["rows", s.rows],
    ["commits", s.commits],
    ["records behind", !unknown ? behind : lags.length ? number(behind) + " + unknown" : "unknown"],
    ["oldest unread, s", lags.length ? Math.round(Math.max(0, ...Object.values(s.lag_s || {}))) : undefined],
    ["rebalances", s.rebalances],
    ["in quarantine", s.quarantined === null ? "unknown" : s.quarantined], ...crossed(s.crossing || {})];
  byId("tiles").replaceChildren(...tiles.filter((t) => t[1] !== undefined).map(([name, value]) => {
    const tile = cell("div", undefined, "tile");
    const text = typeof value === "string";
    const shown = named("b", text ? value : value < 1e8 ? number(value) : short.format(value));
    if (!text) shown.title = number(value);
    tile.append(shown, cell("span", name));
    return tile;
  }));
  const members = s.view ? s.view.members : [];
  const owners = s.owners || {};
  const heads = ["topic", "behind", ...members.map((m) => m.id)];
  byId("agents").replaceChildren(row(...heads.map((text) => named("th", text))));
  byId("agents").rows[0].cells[1].className = "number";
  byId("topics").replaceChildren(...Object.keys(owners).sort().map((topic) => {
    const lag = (s.lag || {})[topic];
    const seats = members.map((m) => {
      const reads = owners[topic].includes(m.id);
      const seat = cell("td", undefined, "seat" + (reads ? (m.id === s.agent.id ? " mine" : " reads") : ""));
      if (reads) seat.title = m.id + " reads " + topic;
      return seat;
    });
    const text = lag !== undefined ? number(lag) : s.topics.includes(topic) ? "unknown" : "";
    return row(named("td", topic), cell("td", text, "number"), ...seats);
  }));
  byId("members").replaceChildren(...members.map((m) => row(named("td", m.id), named("td", m.zone || "-"),
    cell("td", m.capacity), cell("td", Object.values(owners).filter((who) => who.includes(m.id)).length))));
}
async function turn() {
  try {
    const answer = await fetch("status.json", { cache: "no-store" });
    show(await answer.json());
  } catch (error) {
    byId("dot").className = "dot";
    document.body.className = "away";
    byId("standing").textContent = "this agent does not answer: what is below was so before";
  }
  setTimeout(turn, 2000);
}
turn();
</script>
</body>
</html>
"""
