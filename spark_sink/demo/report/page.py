"""Fills the page's template with pictures, tables and text."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from spark_sink.demo.report import findings, flows, ownership, panels, theme, timeline_pictures
from spark_sink.demo.report.run_record import Matrix, PerAgent, Run
from spark_sink.errors import ReportError


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a bar chart; `part` is its length relative to the longest, from 0 to 1."""

    name: str
    value: str
    part: float
    colour: int | None = None


@dataclass(frozen=True, slots=True)
class Bars:
    """One group of bars, for one assignor."""

    title: str
    lines: Sequence[Bar]
    ours: bool = False


@dataclass(frozen=True, slots=True)
class Traffic:
    """The bytes of one partitioner from zone to zone."""

    title: str
    picture: Markup | None
    matrix: Matrix
    largest: float
    share: float | None
    cost: str


def render(report: Mapping[str, Any]) -> str:
    """Render the page of a run: HTML that works offline, on screens of any width, in light and dark mode, and in print.

    Args:
        report: the content of report.json; every key is optional.

    Raises:
        ReportError: a value has the wrong type; the message names its place.
    """
    run = Run.parse(report)
    names = agents(run)
    loader = PackageLoader("spark_sink.demo.report", package_path="")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters |= {"number": findings.number, "percent": findings.percent, "size": findings.size}
    zone_names = flows.zones(run.bytes_by_zone.default, run.bytes_by_zone.az_aware)
    return environment.get_template("page.html").render(
        run=run,
        agents=names,
        verdict=findings.verdict(run),
        tiles=findings.tiles(run),
        figures=findings.figures(run),
        zones=zone_names,
        traffic=_traffic(run, zone_names),
        loads=_loads(run, names),
        steps=_steps(run),
        **_over_time(run, names),
    )


def write(report: Path) -> Path:
    """Write report.html beside a report.json and return its path.

    Raises:
        ReportError: the file does not exist, is not JSON, or contains a value of the wrong type.
    """
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ReportError(f"no report in {report}: run `azimuth demo` first") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ReportError(f"{report} cannot be read ({why}): run `azimuth demo` again") from error
    page = report.with_suffix(".html")
    new = page.with_name(f".{page.name}.new")
    new.write_text(render(content), encoding="utf-8")
    new.replace(page)
    return page


def agents(run: Run) -> list[str]:
    """Return every agent in the report, agent-2 before agent-10; the position determines the colour."""
    named = {entry.agent for entry in run.timeline.ownership} | {entry.agent for entry in run.timeline.commits}
    named |= {*run.partitions_per_agent.hrw, *run.connections.per_agent, *run.topics_per_agent.hrw}
    return sorted(named, key=lambda name: [int(p) if p.isdecimal() else p for p in re.split(r"(\d+)", name)])


def _over_time(run: Run, names: Sequence[str]) -> dict[str, Any]:
    timeline = run.timeline
    colours = {name: theme.agent_colour(i) for i, name in enumerate(names)}
    rows = ownership.segments(timeline)
    found = ownership.blocks(rows, ownership.arrange(timeline.partitions, rows))
    events = sorted(timeline.events, key=lambda event: event.t)
    return {
        "ownership": _both_widths(
            "ownership",
            f"Which of {len(names)} agents owned which of {len(rows)} partitions, over {timeline.end_s:.0f} seconds. "
            "The table below has the numbers.",
            lambda width: timeline_pictures.ownership(timeline, found, len(rows), colours, width),
        )
        if found
        else None,
        "progress": _both_widths(
            "progress",
            "Records waiting, and rows committed by each agent, over time. The table below has the numbers.",
            lambda width: timeline_pictures.lag_and_commits(timeline, colours, width),
        )
        if timeline.lag or timeline.commits
        else None,
        "moments": [
            {
                "event": event,
                "label": event.text or panels.event_label(event),
                "owned": ownership.owned_at(rows, event.t),
                "waiting": next((e.records for e in reversed(timeline.lag) if e.t <= event.t), None),
                "rows": {
                    name: sum(c.rows for c in timeline.commits if c.agent == name and c.t <= event.t) for name in names
                },
            }
            for event in events
        ],
    }


def _both_widths(name: str, alt: str, draw: Callable[[float], Figure]) -> Markup:
    """Draw a wide picture and one for phones; the style sheet shows one of them."""
    pictures = []
    for kind, width in (("wide", panels.WIDE_PX), ("narrow", panels.NARROW_PX)):
        with theme.drawing(f"{name}-{kind}"):
            pictures.append(theme.to_svg(draw(width), f"{name}-{kind}", alt, [kind]))
    return Markup("\n".join(pictures))  # noqa: S704 - to_svg and Matplotlib escape every text


def _traffic(run: Run, zone_names: Sequence[str]) -> list[Traffic]:
    measured = run.bytes_by_zone
    found = []
    for name, title, matrix, reported in (
        ("default", "default partitioner", measured.default, run.cross_zone_share.default),
        ("az-aware", "AZ-aware partitioner", measured.az_aware, run.cross_zone_share.az_aware),
    ):
        share = flows.cross_share(matrix) if reported is None else reported
        picture = _zone_picture(name, title, matrix, zone_names) if flows.cross_share(matrix) is not None else None
        largest = max((amount for row in matrix.values() for amount in row.values()), default=0.0)
        found.append(Traffic(title, picture, matrix, largest, share, findings.money_per_tb(share, run.price_per_gb)))
    return found


def _zone_picture(name: str, title: str, matrix: Matrix, zone_names: Sequence[str]) -> Markup:
    share = findings.percent(flows.cross_share(matrix))
    alt = f"Bytes from the producers' zones to the leaders' zones with the {title}: {share} cross zones."
    with theme.drawing(f"flows-{name}"):
        svg = theme.to_svg(flows.flows(matrix, zone_names), f"flows-{name}", alt)
    return Markup(svg)  # noqa: S704 - to_svg and Matplotlib escape every text


def _loads(run: Run, names: Sequence[str]) -> dict[str, list[Bars]]:
    connections = run.connections
    named = (("ours (HRW)", connections.hrw), ("range", connections.range), ("round robin", connections.round_robin))
    pairs = {name: amount for name, amount in named if amount is not None}
    return {
        "partitions per agent": _per_agent(run.partitions_per_agent, names),
        "topics per agent": _per_agent(run.topics_per_agent, names),
        "connections": [
            _bars("open sockets to brokers", connections.per_agent, names, ours=True),
            _bars("pairs of agent and topic, all agents", pairs, names),
        ],
    }


def _per_agent(counts: PerAgent, names: Sequence[str]) -> list[Bars]:
    named = (("ours (HRW)", counts.hrw), ("range", counts.range), ("round robin", counts.round_robin))
    largest = max((amount for _, row in named for amount in row.values()), default=0.0)
    return [_bars(title, row, names, largest, ours=row is counts.hrw) for title, row in named]


def _bars(
    title: str, counts: Mapping[str, float], names: Sequence[str], largest: float | None = None, *, ours: bool = False
) -> Bars:
    """Compute bars from counts, relative to `largest` or, without it, to the largest count."""
    longest = max(counts.values(), default=0.0) if largest is None else largest
    lines = [
        Bar(
            name=name,
            value=findings.number(amount),
            part=amount / longest if longest else 0.0,
            colour=names.index(name) % theme.AGENT_COLOURS if name in names else None,
        )
        for name, amount in sorted(counts.items(), key=lambda item: names.index(item[0]) if item[0] in names else -1)
    ]
    return Bars(title, lines, ours=ours)


def _steps(run: Run) -> list[Bar]:
    parts = {name: seconds for name, seconds in run.seconds.items() if name != "total"}
    whole = run.seconds.get("total") or sum(parts.values()) or 1.0
    return [Bar(name, findings.number(seconds, " s", 1), min(seconds / whole, 1.0)) for name, seconds in parts.items()]
