"""The options of the sink, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from spark_sink.errors import OptionError
from spark_sink.lake.delta_table import TableSettings
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_storage import storage_options
from spark_sink.options.source_options import _KNOWN as _SOURCE
from spark_sink.sink.topic_routes import Routes

_PROPERTY = "tableproperty."
_NEEDED = ("path", "kafka.group.id", "checkpointLocation")
_KNOWN = frozenset(
    {
        "agent",
        "checkpointlocation",
        "columns",
        "compactevery",
        "compression",
        "mergeschema",
        "partitionby",
        "path",
        "routes",
    }
)
_PREFIXES = ("kafka.", "storage.", _PROPERTY)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of the sink, checked.

    Attributes:
        routes: tables by topic.
        group: the consumer group whose positions the tables store.
        checkpoint: the query's checkpointLocation.
        agent: the agent's name, for the tables' history.
        storage: options of the object store.
        table: settings for creating and changing a table.
        compact_every: number of versions of a table between two compactions; 0 for never.
    """

    routes: Routes
    group: str
    checkpoint: str
    agent: str = ""
    storage: Mapping[str, str] = field(default_factory=dict)
    table: TableSettings = field(default_factory=TableSettings)
    compact_every: int = 100

    @classmethod
    def parse(cls, options: Mapping[str, str]) -> "SinkOptions":
        """Read the options passed to `.option(...)`; names are case-insensitive, as in Spark.

        Raises:
            OptionError: an option is unknown, missing or invalid.
        """
        given = {name.lower(): value for name, value in options.items()}
        for name in _NEEDED:
            if not given.get(name.lower()):
                raise OptionError(f"delta-exactly-once needs the option {name!r}")
        for name in given:
            # Options of the source are ignored, because both sides of a query may have the same options.
            if name not in _KNOWN | _SOURCE and not name.startswith(_PREFIXES):
                known = f"storage.*, tableProperty.* and {sorted(_KNOWN)}"
                raise OptionError(f"delta-exactly-once has no option {name!r}; known are {known}")
        layout = Layout(
            partition_columns=tuple(one.strip() for one in given.get("partitionby", "").split(",") if one.strip()),
            compression=given.get("compression", "zstd"),
        )
        merge = given.get("mergeschema", "false").lower()
        if merge not in {"true", "false"}:
            raise OptionError(f"option 'mergeSchema': {merge!r}, need true or false")
        properties = {
            name[len(_PROPERTY) :]: value for name, value in options.items() if name.lower().startswith(_PROPERTY)
        }
        every = given.get("compactevery", "100")
        if not every.isdecimal():
            raise OptionError(f"option 'compactEvery': {every!r}, need a number of versions, 0 for never")
        return cls(
            routes=Routes.parse(given["path"], given.get("routes")),
            group=given["kafka.group.id"],
            checkpoint=given["checkpointlocation"],
            agent=given.get("agent", ""),
            storage=storage_options(options),
            table=TableSettings(layout=layout, properties=properties, merge_schema=merge == "true"),
            compact_every=int(every),
        )
