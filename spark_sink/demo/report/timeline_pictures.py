"""The pictures over time: owners, lag of the table, and rows by committing agent."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from spark_sink.demo.report import theme
from spark_sink.demo.report.marks import GAP_PX
from spark_sink.demo.report.ownership import Block, Segment
from spark_sink.demo.report.panels import WIDE_PX, stack
from spark_sink.demo.report.run_record import Event, Timeline


def ownership(
    timeline: Timeline, found: Sequence[Block], rows: int, colours: dict[str, str], width_px: float
) -> Figure:
    """Draw a row per partition, coloured by its owner; paler while the owner was dead."""
    made, (axes,) = stack(timeline, width_px, {"": 330.0 if width_px == WIDE_PX else 300.0})
    axes.set_ylim(rows, 0)
    _draw_blocks(axes, found, colours)
    for block in _largest(found):
        _write_name(axes, block, timeline.events)
    axes.set_yticks([])
    topics = len({topic for topic, _ in timeline.partitions})
    axes.set_ylabel(f"{rows:,} partitions of {topics:,} topics")
    return made


def lag_and_commits(timeline: Timeline, colours: dict[str, str], width_px: float) -> Figure:
    """Draw two panels: waiting records above, rows in the table by committing agent below."""
    heights_px = {"records waiting (lag)": 150.0, "rows committed, by agent": 190.0}
    made, (above, below) = stack(timeline, width_px, heights_px)
    times = [entry.t for entry in timeline.lag]
    waiting = [entry.records for entry in timeline.lag]
    above.fill_between(times, waiting, color=theme.MUTED, alpha=0.25, linewidth=0)
    above.plot(times, waiting, color=theme.INK, linewidth=1.5)
    _stack_commits(below, timeline, colours)
    for axes in (above, below):
        _shade_takeover(axes, timeline.events)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
        axes.yaxis.set_major_formatter(FuncFormatter(short_number))
        axes.set_axisbelow(True)
        axes.grid(axis="y", color=theme.GRID, linewidth=0.8)
    return made


def short_number(value: float, _position: object = None) -> str:
    """Format 300000 as 300 k, to fit on an axis."""
    for size, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= size:
            return f"{value / size:.4g}{unit}"
    return f"{value:.4g}"


def _draw_blocks(axes: Axes, found: Sequence[Block], colours: dict[str, str]) -> None:
    """Draw one path per agent and state, so that thousands of rectangles take only a few kilobytes."""
    for agent, alive in sorted({(b.segment.agent, b.segment.alive) for b in found}):
        corners: list[tuple[float, float]] = []
        for block in found:
            segment = block.segment
            if (segment.agent, segment.alive) == (agent, alive):
                corners += _corners(segment, block.top, block.bottom)
        codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * (len(corners) // 5)
        patch = PathPatch(Path(corners, codes), facecolor=colours[agent], linewidth=0, alpha=None if alive else 0.3)
        axes.add_patch(patch)


def _corners(segment: Segment, top: float, bottom: float) -> list[tuple[float, float]]:
    begin, end = segment.begin_s, segment.end_s
    return [(begin, top), (end, top), (end, bottom), (begin, bottom), (begin, top)]


def _largest(found: Sequence[Block]) -> list[Block]:
    """Return the block with the largest area of each live agent, where its name fits best."""
    best: dict[str, Block] = {}
    for block in found:
        if block.segment.alive and _area(block) > _area(best.get(block.segment.agent)):
            best[block.segment.agent] = block
    return list(best.values())


def _area(block: Block | None) -> float:
    if block is None:
        return 0.0
    return (block.bottom - block.top) * (block.segment.end_s - block.segment.begin_s)


def _write_name(axes: Axes, block: Block, events: Sequence[Event]) -> None:
    """Write the name into a block if it fits, away from the lines of the events if possible."""
    segment = block.segment
    corners = [(segment.begin_s, block.top), (segment.end_s, block.bottom)]
    (left, top), (right, bottom) = axes.transData.transform(corners)
    needed = theme.text_width(segment.agent) + 2 * GAP_PX
    if right - left < needed or top - bottom < theme.FONT_PX + 4:
        return
    half_s = needed / 2 * (segment.end_s - segment.begin_s) / (right - left)
    middle_s, room_s = (segment.begin_s + segment.end_s) / 2, (segment.end_s - segment.begin_s) / 2 - half_s
    places_s = [middle_s + part * room_s for part in (0, 0.25, -0.25, 0.5, -0.5, 0.75, -0.75, 1, -1)]
    free_s = [t for t in places_s if all(abs(event.t - t) >= half_s for event in events)]
    centre = (next(iter(free_s), middle_s), (block.top + block.bottom) / 2)
    axes.text(*centre, segment.agent, ha="center", va="center", color=theme.ON_AGENT, fontweight="bold")


def _shade_takeover(axes: Axes, events: Sequence[Event]) -> None:
    kills = [event.t for event in events if event.kind == "kill"]
    takeovers = [event.t for event in events if event.kind == "takeover"]
    for kill in kills:
        after = [t for t in takeovers if t >= kill]
        if after:
            axes.axvspan(kill, min(after), color=theme.BAD, alpha=0.1, linewidth=0)


def _stack_commits(axes: Axes, timeline: Timeline, colours: dict[str, str]) -> None:
    """Stack the rows that each agent has committed so far; the top edge is the table's row count."""
    commits = sorted(timeline.commits, key=lambda commit: commit.t)
    agents = [agent for agent in colours if any(commit.agent == agent for commit in commits)]
    times = [0.0, *(commit.t for commit in commits), timeline.end_s]
    floor = [0.0] * len(times)
    for agent in agents:
        total, top = 0, list(floor)
        for i, commit in enumerate(commits, start=1):
            total += commit.rows if commit.agent == agent else 0
            top[i] += total
        top[-1] += total
        axes.fill_between(times, floor, top, step="post", color=colours[agent], linewidth=0)
        floor = top
    axes.set_ylim(0, max(floor[-1] * 1.05, 1.0))
    _name_bands(axes, timeline, agents)


def _name_bands(axes: Axes, timeline: Timeline, agents: Sequence[str]) -> None:
    """Write the name into every band that is high enough along the whole name."""
    (x, y), (x1, y1) = axes.transData.transform([(0, 0), (1, 1)])
    floor = 0.0
    for agent in agents:
        rows = sum(commit.rows for commit in timeline.commits if commit.agent == agent)
        label, end_s = f"{agent}: {rows:,}", timeline.end_s - GAP_PX / (x1 - x)
        begin_s = end_s - (theme.text_width(label) + GAP_PX) / (x1 - x)
        low, high = _band(timeline, agents, agent, begin_s)
        middle, needed = floor + rows / 2, (theme.FONT_PX + 4) / 2 / (y1 - y)
        if middle + needed < min(high, floor + rows) and middle - needed > max(low, floor):
            axes.text(end_s, middle, label, ha="right", va="center", color=theme.ON_AGENT, fontweight="bold")
        floor += rows


def _band(timeline: Timeline, agents: Sequence[str], agent: str, t: float) -> tuple[float, float]:
    """Return the lower and the upper edge of an agent's band at a time, in rows."""
    so_far = [sum(c.rows for c in timeline.commits if c.agent == name and c.t <= t) for name in agents]
    place_of = agents.index(agent)
    return float(sum(so_far[:place_of])), float(sum(so_far[: place_of + 1]))
