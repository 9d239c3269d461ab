"""Standard output for people: tables that fit, names that stay whole, and text that rich does not read as markup."""

from collections.abc import Collection

from rich.console import Console
from rich.table import Table

_COLUMNS = 80


def console() -> Console:
    """Standard output without markup: a name from elsewhere may look like markup, and rich would fail on it."""
    made = Console(markup=False, emoji=False, highlight=False)
    # A narrower terminal folds lines by itself; a narrower table would have columns of one letter.
    made.width = max(made.width, _COLUMNS)
    return made


def table(*columns: str, names: Collection[str]) -> Table:
    """A table of these columns.

    Args:
        columns: headings.
        names: those that take more lines where the width (80 without a terminal) is short; the others are numbers and
            stay as they are.
    """
    made = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column not in names)
    return made
