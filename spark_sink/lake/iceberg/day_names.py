"""Names of days outside the calendar of Python; this module imports pyiceberg, which loads slowly.

A producer with a wrong clock sends such a time, and a table partitioned by its day has such a partition. pyiceberg
names the partition of every file of a commit for the summary, and fails on a day before the year 1 or after 9999.
"""

from pyiceberg.utils import datetime as times

_name_of_day = times.to_human_day


def name_any_day() -> None:
    """Let pyiceberg name such a day by its number; a second call has no effect."""
    times.to_human_day = _name


def _name(day_ordinal: int) -> str:
    try:
        return _name_of_day(day_ordinal)
    except OverflowError:
        return str(day_ordinal)
