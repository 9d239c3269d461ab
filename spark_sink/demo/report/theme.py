"""Pictures as inline SVG with the page's colours and fonts, so that one drawing fits light and dark mode."""

import io
import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from markupsafe import escape
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

AGENT_COLOURS = 8
FONT_PX = 12.0

# Matplotlib needs real colours. These values are unique and become `var(--name)` in the SVG.
INK, MUTED, GRID, BAD, ON_AGENT, LOCAL, CROSS = (f"#fe00{i:02x}" for i in range(7))
_VARIABLES = {
    INK: "ink",
    MUTED: "muted",
    GRID: "grid",
    BAD: "bad",
    ON_AGENT: "on-agent",
    LOCAL: "local",
    CROSS: "cross",
} | {f"#fe01{i:02x}": f"agent-{i}" for i in range(AGENT_COLOURS)}


def agent_colour(number: int) -> str:
    """Return the colour of an agent, by its position in the list of agents; colours repeat after eight."""
    return f"#fe01{number % AGENT_COLOURS:02x}"


@contextmanager
def drawing(name: str) -> Iterator[None]:
    """Apply the settings for drawing and writing a picture; Matplotlib does not parse names of agents as formulas."""
    settings: Any = {  # Matplotlib's type lists every possible setting
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "text.parse_math": False,
        "font.size": FONT_PX,
        "text.color": INK,
        "axes.labelcolor": MUTED,
        "xtick.color": MUTED,
        "ytick.color": MUTED,
    }
    with mpl.rc_context(settings), warnings.catch_warnings():
        # The page's fonts draw the text, so a glyph that Matplotlib's font lacks is not a problem.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def figure(width_px: float, height_px: float) -> Figure:
    """Create an empty figure in which one unit of the SVG is one pixel of the page at full size."""
    made = Figure(figsize=(width_px / 72, height_px / 72), dpi=72)
    made.patch.set_visible(False)
    return made


def text_width(text: str) -> float:
    """Return the largest width of a text in the page's fonts, in pixels."""
    return FONT_PX * sum(0.58 if character.isascii() else 1.05 for character in text)


def to_svg(drawn: Figure, name: str, alt: str, classes: Iterable[str] = ()) -> str:
    """Write a figure as an `<svg>` element for use inside a page; call it within `drawing`.

    Args:
        drawn: the figure.
        name: unique in the page; separates the ids of several pictures.
        alt: description of the picture, for readers who cannot see it.
        classes: classes of the element.
    """
    out = io.StringIO()
    FigureCanvasSVG(drawn).print_figure(
        out, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
    )
    svg = out.getvalue()
    body = svg[svg.index(">", svg.index("<svg")) + 1 :]
    # The style sheet in <defs> selects `*`, which would affect the whole page; the page has the same rule for pictures.
    for outside in (r"<metadata>.*?</metadata>", r"<style.*?</style>", r"<!--.*?-->"):
        body = re.sub(outside, "", body, flags=re.DOTALL)
    body = re.sub(r"<[^>]+>", lambda tag: _tidy(tag.group(), name), body).strip()
    width, height = drawn.get_size_inches() * 72
    box = f'viewBox="0 0 {width:.0f} {height:.0f}" role="img" aria-label="{escape(alt)}"'
    return f'<svg class="{" ".join(classes)}" {box} xmlns:xlink="http://www.w3.org/1999/xlink">\n{body}'


def _tidy(tag: str, name: str) -> str:
    """Make ids unique, insert theme colours, and round coordinates to a tenth of a pixel."""
    tag = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r"(\d\.\d)\d+", r"\1", tag)
    return re.sub(r"#fe0[01][0-9a-f]{2}", lambda colour: f"var(--{_VARIABLES[colour.group()]})", tag)
