"""The picture of the traffic: bytes from the producer's zone to the leader's zone."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from spark_sink.demo.report import theme
from spark_sink.demo.report.run_record import Matrix

_WIDTH_PX, _HEIGHT_PX = 460.0, 250.0
_LEFT, _RIGHT, _BAR, _SPACE = 60.0, 400.0, 10.0, 18.0


def zones(*found: Matrix) -> list[str]:
    """Return every zone that sends or receives, sorted."""
    return sorted({zone for matrix in found for source, row in matrix.items() for zone in (source, *row)})


def cross_share(matrix: Matrix) -> float | None:
    """Return the share of the bytes that leaves its zone, from 0 to 1; None if there are no bytes."""
    total = sum(sum(row.values()) for row in matrix.values())
    cross = sum(amount for source, row in matrix.items() for target, amount in row.items() if target != source)
    return cross / total if total else None


def flows(matrix: Matrix, names: Sequence[str]) -> Figure:
    """Draw a ribbon for each pair of zones, as thick as its bytes; ribbons across zones have the warning colour."""
    made = theme.figure(_WIDTH_PX, _HEIGHT_PX)
    axes = made.add_axes((0, 0, 1, 1))
    axes.set_xlim(0, _WIDTH_PX)
    axes.set_ylim(_HEIGHT_PX, 0)
    axes.axis("off")
    axes.text(_LEFT, 14, "producers in", ha="center", color=theme.MUTED)
    axes.text(_RIGHT, 14, "leaders in", ha="center", color=theme.MUTED)
    sent = [sum(matrix.get(zone, {}).values()) for zone in names]
    received = [sum(row.get(zone, 0.0) for row in matrix.values()) for zone in names]
    scale = (_HEIGHT_PX - 50 - _SPACE * (len(names) - 1)) / max(sum(sent), 1.0)
    from_y = _zone_bars(axes, names, [amount * scale for amount in sent], _LEFT - _BAR, "right")
    to_y = _zone_bars(axes, names, [amount * scale for amount in received], _RIGHT, "left")
    for i, source in enumerate(names):
        for j, target in enumerate(names):
            thick = matrix.get(source, {}).get(target, 0.0) * scale
            if thick > 0:
                _ribbon(axes, from_y[i], to_y[j], thick, local=i == j)
            from_y[i] += thick
            to_y[j] += thick
    return made


def _zone_bars(axes: Axes, names: Sequence[str], heights: Sequence[float], x: float, side: str) -> list[float]:
    tops, y = [], 32.0
    for name, height in zip(names, heights, strict=True):
        axes.add_patch(Rectangle((x, y), _BAR, height, facecolor=theme.INK, linewidth=0))
        at = x - 6 if side == "right" else x + _BAR + 6
        axes.text(at, y + height / 2, name, ha=side, va="center")
        tops.append(y)
        y += height + _SPACE
    return tops


def _ribbon(axes: Axes, from_y: float, to_y: float, thick: float, *, local: bool) -> None:
    middle = (_LEFT + _RIGHT) / 2
    upper = [(_LEFT, from_y), (middle, from_y), (middle, to_y), (_RIGHT, to_y)]
    lower = [(x, y + thick) for x, y in reversed(upper)]
    codes = [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO, *[Path.CURVE4] * 3]
    colour = theme.LOCAL if local else theme.CROSS
    axes.add_patch(PathPatch(Path([*upper, *lower], codes), facecolor=colour, alpha=0.65, linewidth=0))
