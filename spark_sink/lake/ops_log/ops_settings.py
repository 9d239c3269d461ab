"""The settings of an ops log, checked against the addresses of the data tables. Pure but for local paths."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from spark_sink.errors import OptionError
from spark_sink.formats.quarantine_addresses import quarantine_of, refuse_quarantine_name
from spark_sink.lake.matching_tables import has_placeholder
from spark_sink.lake.mistaken_addresses import refuse_mistaken
from spark_sink.lake.table_addresses import full_address, is_iceberg, table_uri

_HOUR_S: Final = 3_600.0
_MOST_DAYS: Final = 36_500
_PLACEHOLDER: Final = re.compile(r"\{(?:topic|cluster)\}")
_INSTEAD: Final = "give the ops log a folder or an address of its own"


@dataclass(frozen=True, slots=True, kw_only=True)
class OpsSettings:
    """An ops log.

    Attributes:
        table: address of its Delta table.
        every_s: interval of its commits, seconds, 1 to 3600.
        keep_days: rows of earlier days are removed; 1 to 36500.
        storage: options of the object store.
    """

    table: str
    every_s: float = 60.0
    keep_days: int = 90
    storage: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if is_iceberg(full_address(self.table, self.storage)):
            raise OptionError(
                f"ops_log {self.table!r} is an Iceberg table, and the ops log is a Delta table; {_INSTEAD}"
            )
        if has_placeholder(self.table):
            raise OptionError(f"ops_log {self.table!r}: there is one for all topics and clusters; {_INSTEAD}")
        refuse_mistaken(self.table)
        refuse_quarantine_name(table_uri(self.table), "the ops log", "name it otherwise")
        if not 1 <= self.every_s <= _HOUR_S:  # also catches nan
            raise OptionError(f"ops_log_s={self.every_s!r}, need 1 to {_HOUR_S:g} seconds")
        if (
            isinstance(self.keep_days, bool)
            or not isinstance(self.keep_days, int)
            or not 1 <= self.keep_days <= _MOST_DAYS
        ):
            raise OptionError(f"ops_log_days={self.keep_days!r}, need a whole number, 1 to {_MOST_DAYS}")

    def refuse_near(self, tables: Iterable[str]) -> None:
        """Refuse an ops log at, above or below an address that a data table or its quarantine has, or may get.

        The ops log would keep the topic of that table from being written, or its files would be another table's.

        Args:
            tables: addresses of the data tables; `{topic}` and `{cluster}` in them stand for any name.

        Raises:
            OptionError: one of them is.
        """
        own = _parts(table_uri(self.table))
        for table in tables:
            address = table_uri(table)
            if any(_meet(own, _parts(one)) for one in (address, quarantine_of(address))):
                raise OptionError(
                    f"ops_log {self.table!r} is at, above or below an address of the tables {table!r}: "
                    f"{_INSTEAD}, outside of them"
                )


def _parts(address: str) -> list[str]:
    return [one for one in address.split("/") if one]


def _meet(own: list[str], table: list[str]) -> bool:
    """Return whether one of two addresses is the other one, or a folder on the way to it."""
    return all(_pattern(theirs).fullmatch(mine) for mine, theirs in zip(own, table, strict=False))


def _pattern(part: str) -> re.Pattern[str]:
    return re.compile("[^/]+".join(map(re.escape, _PLACEHOLDER.split(part))))
