"""The report of a simulation: one HTML file that works offline, with a picture for each trace."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from assignors.simulation import Outcome, record_ages
from spark_sink.cli._simulation_columns import explained
from spark_sink.errors import ReportError

try:
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from spark_sink.demo.report import theme
except ImportError as error:  # pragma: no cover -- without the extra
    raise ReportError("the report needs matplotlib and jinja2: pip install 'kafka-azimuth[demo]'") from error

_WIDTH_PX, _HEIGHT_PX = 1040.0, 560.0
_POINTS = 700


def write(path: Path, outcomes: Sequence[Outcome], slo_s: float) -> None:
    """Write the report.

    Raises:
        ReportError: the file cannot be written.
    """
    environment = Environment(
        loader=PackageLoader("spark_sink.cli", package_path=""), autoescape=True, undefined=StrictUndefined
    )
    style = (Path(theme.__file__).parent / "page.css").read_text(encoding="utf-8")
    names = list(dict.fromkeys(one.trace for one in outcomes))
    groups = {name: [one for one in outcomes if one.trace == name] for name in names}
    page = environment.get_template("simulation.html").render(
        style=Markup(style),  # noqa: S704 -- our own file
        slo_s=slo_s,
        explained=explained(outcomes, slo_s),
        colours=_colours(outcomes),
        groups=[(name, _picture(found, slo_s), found) for name, found in groups.items()],
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error) from error


def check(path: Path) -> None:
    """Check that the report can be written, before the simulation takes minutes.

    Raises:
        ReportError: the file cannot be written.
    """
    new = not path.exists()
    try:
        with path.open("a", encoding="utf-8"):
            pass
        if new:
            path.unlink()
    except OSError as error:
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> ReportError:
    return ReportError(f"{path}: the report cannot be written: {error.strerror}")


def _colours(outcomes: Sequence[Outcome]) -> dict[str, int]:
    policies = dict.fromkeys(one.policy for one in outcomes)
    return {policy: number % theme.AGENT_COLOURS for number, policy in enumerate(policies)}


def _picture(outcomes: Sequence[Outcome], slo_s: float) -> Markup:
    """Draw load, age of the oldest unread record, and workers over time."""
    name = f"trace-{outcomes[0].trace}"
    colours = _colours(outcomes)
    with theme.drawing(name):
        figure = theme.figure(_WIDTH_PX, _HEIGHT_PX)
        _draw(figure, outcomes, colours, slo_s)
        alt = f"Load, age of the oldest unread record and workers on the trace {outcomes[0].trace}, by policy."
        return Markup(theme.to_svg(figure, name, alt))  # noqa: S704 -- to_svg and Matplotlib escape every text


def _draw(figure: Figure, outcomes: Sequence[Outcome], colours: dict[str, int], slo_s: float) -> None:
    load, age, workers = figure.subplots(3, 1, sharex=True)
    figure.subplots_adjust(left=0.09, right=0.99, top=0.98, bottom=0.08, hspace=0.12)
    trace = outcomes[0].runs[0].trace
    every = max(len(trace.arrivals) // _POINTS, 1)
    hours = np.arange(0, len(trace.arrivals), every) * trace.step_s / 3600
    come = sum(run.trace.arrivals.sum(axis=1) for run in outcomes[0].runs) / trace.step_s
    load.plot(hours, come[::every], color=theme.INK, linewidth=1)
    load.set_ylabel("records/s")
    for one in outcomes:
        oldest = np.max([record_ages(run.written, run.committed, trace.step_s).max(axis=1) for run in one.runs], axis=0)
        count = np.sum([run.workers for run in one.runs], axis=0)
        colour = theme.agent_colour(colours[one.policy])
        # Each point shows the maximum of its interval, so that no spike is lost between two points.
        worst = [oldest[i : i + every].max() for i in range(0, len(oldest), every)]
        age.plot(hours, worst, color=colour, linewidth=1)
        workers.plot(hours, count[::every], color=colour, linewidth=1)
    age.axhline(slo_s, color=theme.BAD, linewidth=1, linestyle="--")
    age.set_yscale("symlog", linthresh=60)
    # Plain numbers, because SVG text cannot show the formulas that label logarithmic axes.
    age.yaxis.set_major_formatter(lambda seconds, _: f"{seconds:,.0f}")
    age.set_ylabel("oldest unread, s")
    workers.set_ylabel("workers")
    workers.set_xlabel("hours")
    for axes in (load, age, workers):
        axes.patch.set_visible(False)
        axes.grid(color=theme.GRID, linewidth=0.6)
        for side in axes.spines.values():
            side.set_color(theme.GRID)
