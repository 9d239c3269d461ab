"""Panels over one time axis; the lines of events cross all panels, and their labels are above the first."""

from collections.abc import Mapping
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import MaxNLocator

from spark_sink.demo.report import theme
from spark_sink.demo.report.marks import GAP_PX, Mark, Placed, place
from spark_sink.demo.report.run_record import Event, Timeline

WIDE_PX, NARROW_PX = 1000.0, 380.0
_LANE_PX, _TITLE_PX, _BOTTOM_PX, _SPACE_PX = 17.0, 24.0, 40.0, 10.0
_LABELS = {"kill": " killed", "takeover": " takes over", "join": " joins", "start": " starts"}


def event_label(event: Event) -> str:
    """Return the label of an event's line."""
    return f"{event.agent}{_LABELS.get(event.kind, ' ' + event.kind)}".strip()


@dataclass(frozen=True, slots=True)
class _Frame:
    """The measures of a picture, in pixels from its lower left corner."""

    width: float
    height: float
    top: float
    left: float
    right: float

    def panel(self, made: Figure, low: float, height: float) -> Axes:
        """Add empty axes without a border, `low` pixels above the lower edge."""
        across = self.width - self.left - self.right
        axes = made.add_axes((self.left / self.width, low / self.height, across / self.width, height / self.height))
        axes.patch.set_visible(False)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0, labelbottom=False, labelsize=theme.FONT_PX)
        return axes

    def label_top(self, where: Placed) -> float:
        """The upper edge of a lane, as a share of the height."""
        return (self.top + (where.lane + 1) * _LANE_PX) / self.height


def stack(timeline: Timeline, width_px: float, heights_px: Mapping[str, float]) -> tuple[Figure, list[Axes]]:
    """Create the figure of a timeline.

    Args:
        timeline: gives the events, and the end of the axis.
        width_px: width of the whole figure; `WIDE_PX` has room for more ticks.
        heights_px: height of each panel by its title, from top to bottom.

    Returns:
        The figure and a panel for each height.
    """
    wide = width_px == WIDE_PX
    end_s = max(timeline.end_s, 1.0)
    left, right = (62.0, 14.0) if wide else (46.0, 8.0)
    events = sorted(timeline.events, key=lambda event: event.t)
    across = width_px - left - right
    marks = [Mark(left + across * event.t / end_s, theme.text_width(event_label(event))) for event in events]
    placed = place(marks, right_edge=width_px)
    lanes_px = (max((where.lane for where in placed), default=-1) + 1) * _LANE_PX
    title_px = _TITLE_PX if any(heights_px) else 0.0
    top = _BOTTOM_PX + sum(heights_px.values()) + (title_px + _SPACE_PX) * (len(heights_px) - 1)
    frame = _Frame(width_px, top + lanes_px + title_px + 8, top, left, right)
    made = theme.figure(frame.width, frame.height)
    panels: list[Axes] = []
    low = top
    for title, height_px in heights_px.items():
        # The first title is above the labels of the events, so that no line crosses it.
        at = low + title_px - 2 if panels else frame.height - 4
        made.text(left / frame.width, at / frame.height, title, va="top", fontweight="bold")
        panels.append(frame.panel(made, low - height_px, height_px))
        panels[-1].set_xlim(0, end_s)
        low -= height_px + title_px + _SPACE_PX
    panels[-1].tick_params(labelbottom=True)
    panels[-1].xaxis.set_major_locator(MaxNLocator(10 if wide else 5, steps=[1, 2, 5, 10]))
    panels[-1].set_xlabel("seconds since the start")
    for event, mark, where in zip(events, marks, placed, strict=True):
        _draw_line(made, panels, event, mark.x / frame.width, frame.label_top(where))
        _write_label(made, event, mark.x, frame, where)
    return made, panels


def _draw_line(made: Figure, panels: list[Axes], event: Event, x: float, label_top: float) -> None:
    """Draw an event's line through every panel; in the first panel it ends at the top of its label."""
    for i, axes in enumerate(panels):
        position = axes.get_position()
        ends = [(x, position.y0), (x, position.y1 if i else label_top)]
        line = PathPatch(Path(ends), edgecolor=_colour(event), facecolor="none", linewidth=1.2)
        if event.kind in {"start", "done"}:
            line.set_linestyle((0, (2, 3)))
        made.add_artist(line)


def _write_label(made: Figure, event: Event, x: float, frame: _Frame, where: Placed) -> None:
    made.text(
        (x + (-GAP_PX / 2 if where.leftwards else GAP_PX / 2)) / frame.width,
        frame.label_top(where),
        event_label(event),
        ha="right" if where.leftwards else "left",
        va="top",
        color=_colour(event),
        fontweight="bold" if event.kind == "kill" else "normal",
    )


def _colour(event: Event) -> str:
    return theme.BAD if event.kind == "kill" else theme.INK
