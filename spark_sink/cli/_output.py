"""Standard output for people: tables fit, names stay whole, and rich does not interpret text as markup."""

from collections.abc import Collection

from rich.console import Console
from rich.table import Table

_COLUMNS = 80


def console() -> Console:
    """Return standard output without markup: an external name may look like markup, and rich would fail on it."""
    made = Console(markup=False, emoji=False, highlight=False)
    # A narrower terminal wraps lines by itself; a narrower table would have columns of one letter.
    made.width = max(made.width, _COLUMNS)
    return made


def table(*columns: str, names: Collection[str]) -> Table:
    """Create a table with these columns.

    Args:
        columns: headings.
        names: columns that wrap onto more lines if the width (80 without a terminal) is too small; the others are
            numbers and never wrap.
    """
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column not in names)
    return made
