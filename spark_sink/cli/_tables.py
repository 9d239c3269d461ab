"""The tables of a command: one address, an address with `{topic}` or `{cluster}`, or those of a fleet's file."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from spark_sink.cli._fleet_file import load_fleet
from spark_sink.cli._long_steps import long_step
from spark_sink.cli._option_values import given, storage_pairs
from spark_sink.errors import SparkSinkError

Found = TypeVar("Found")

Address = Annotated[
    str | None,
    typer.Argument(metavar="TABLE", help="Address of the table; {topic} and {cluster} stand for any name."),
]
Group = Annotated[str | None, typer.Option(callback=given, help="Consumer group, where several have written.")]
Storage = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=VALUE", help="Option of the object store; catalog.NAME=VALUE of an Iceberg catalog."),
]
Fleet = Annotated[Path | None, typer.Option("--fleet", help="TOML file of a fleet: all of its tables.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The tables of a command.

    Attributes:
        addresses: of tables that exist, unless the address names one.
        group: the consumer group, as given or in the fleet's file.
        storage: options of the object store.
        named: what the user named, for the line with the total; None for one table.
        unread: error by address, of a fleet's sources without a table or with a store that does not answer.
    """

    addresses: list[str]
    group: str | None
    storage: dict[str, str]
    named: str | None = None
    unread: Mapping[str, SparkSinkError] = field(default_factory=dict)

    def each(self, work: Callable[[str], Found]) -> Iterator[tuple[str, Found | SparkSinkError]]:
        """Yield the result for each table, then what is in `unread`; the error of one table stops no other.

        Raises:
            SparkSinkError: the error of the only table.
        """
        for address in self.addresses:
            try:
                with long_step(f"looking at {address}", prints=True):
                    found: Found | SparkSinkError = work(address)
            except SparkSinkError as error:
                if self.named is None:
                    raise
                found = error
            yield address, found
        yield from self.unread.items()


def tables(table: str | None, fleet: Path | None, group: str | None, storage: list[str] | None) -> Tables:
    """Find the tables.

    Raises:
        typer.BadParameter: neither an address nor a fleet's file, or both.
        TableError: the address has placeholders, and matches no table.
        OptionError: the address or the fleet's file is invalid.
    """
    if (table is None) == (fleet is None):
        raise typer.BadParameter("give the address of a table, or --fleet FILE", param_hint="TABLE")
    from spark_sink.lake.matching_tables import has_placeholder, matching_tables
    from spark_sink.lake.table_addresses import full_address

    options = storage_pairs(storage)
    if table is not None:
        table = full_address(table, options)
        named = table if has_placeholder(table) else None
        with long_step(f"looking for tables at {table}"):
            addresses = matching_tables(table, options)
        return Tables(addresses=addresses, group=group, storage=options, named=named)
    settings = load_fleet(Path(str(fleet)), "tables")
    options = {**settings.table_storage, **options}
    found: list[str] = []
    unread: dict[str, SparkSinkError] = {}
    for source in settings.sources:
        address = settings.address(source)
        try:
            with long_step(f"looking for tables at {address}"):
                found += matching_tables(address, options)
        except SparkSinkError as error:
            unread[address] = error
    return Tables(
        addresses=list(dict.fromkeys(found)),
        group=group or settings.name,
        storage=options,
        named=f"fleet {settings.name!r}",
        unread=unread,
    )


def not_read(faults: int) -> str:
    """Return the end of a line with a total, which counts only the tables that were read."""
    return f", {faults} not read" if faults else ""


def say_fault(error: SparkSinkError) -> None:
    """Print the error of one of several tables."""
    typer.echo(f"azimuth: {error}", err=True)
