"""The page of the whole fleet, as any agent serves it: all topics, their lag and their readers."""

FLEET_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>azimuth fleet</title>
<style>
:root { color-scheme: light dark; --ink: #1c2430; --muted: #5d6b7e; --line: #dfe4ea; --paper: #fff; --bad: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --ink: #e7ebf0; --muted: #9aa7b7; --line: #2c3540; --paper: #12171d;
  --bad: #ff8a80; } }
body { margin: 0 auto; max-width: 1100px; padding: 24px; background: var(--paper); color: var(--ink);
  font: 15px/1.45 system-ui, sans-serif; }
body.away table { opacity: .45; }
h1 { font-size: 20px; margin: 0 0 4px; } h2 { font-size: 15px; margin: 28px 0 8px; }
#state, a { color: var(--muted); }
table { border-collapse: collapse; width: 100%; font-size: 13px; }
th, td { padding: 3px 10px; text-align: left; border-bottom: 1px solid var(--line); overflow-wrap: anywhere; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.bad { color: var(--bad); }
</style>
</head>
<body>
<h1 id="name">...</h1>
<div id="state">waiting for the first answer</div>
<p><a href="./">the page of this agent</a></p>
<h2>Topics, the furthest behind first</h2>
<table><thead><tr><th>topic</th><th class="number">records behind</th><th class="number">oldest unread, s</th>
<th class="number">written a second</th><th>readers</th></tr></thead><tbody id="topics"></tbody></table>
<h2>Living agents</h2>
<table><thead><tr><th>agent</th><th>zone</th><th class="number">capacity</th><th class="number">topics</th></tr></thead>
<tbody id="agents"></tbody></table>
<script>
const byId = (id) => document.getElementById(id);
const cell = (text, kind) => {
  const made = document.createElement("td");
  made.textContent = text;
  if (kind) made.className = kind;
  return made;
};
const row = (...cells) => { const made = document.createElement("tr"); made.append(...cells); return made; };
const shown = (value) => value === null || value === undefined ? "unknown" : Math.round(value).toLocaleString("en");
const weight = (one) => one.lag === null || one.lag === undefined ? Infinity : one.lag;
function show(s) {
  document.body.className = "";
  byId("name").textContent = "fleet of " + s.agents.length + " agents, " + Object.keys(s.owners).length + " topics";
  byId("state").textContent = s.summary + ", as agent " + s.agent + " sees it at "
    + new Date(s.at * 1000).toLocaleTimeString();
  const figures = (topic) => s.figures[topic] || {};
  const topics = Object.keys(s.owners).sort((a, b) =>
    (weight(figures(a)) === weight(figures(b)) ? 0 : weight(figures(b)) > weight(figures(a)) ? 1 : -1)
    || a.localeCompare(b));
  byId("topics").replaceChildren(...topics.map((topic) => {
    const one = figures(topic), readers = s.owners[topic], paused = s.paused.includes(topic);
    return row(cell(topic), cell(shown(one.lag), "number"), cell(shown(one.lag_s), "number"),
      cell(shown(one.rate), "number"),
      paused ? cell("paused", "bad") : cell(readers.join(", ") || "none", readers.length ? "" : "bad"));
  }));
  byId("agents").replaceChildren(...s.agents.map((one) => row(cell(one.id), cell(one.zone || "-"),
    cell(one.capacity, "number"),
    cell(Object.values(s.owners).filter((who) => who.includes(one.id)).length, "number"))));
}
async function turn() {
  try {
    const answer = await fetch("fleet.json", { cache: "no-store" });
    show(await answer.json());
  } catch (error) {
    document.body.className = "away";
    byId("state").textContent = "this agent does not answer: what is below was so before";
  }
  setTimeout(turn, 5000);
}
turn();
</script>
</body>
</html>
"""
