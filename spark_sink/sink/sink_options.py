"""The options of the sink, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from assignors.settings import proposal
from spark_sink.errors import OptionError
from spark_sink.lake.iceberg.catalogs import iceberg_address
from spark_sink.lake.iceberg.partition_terms import parse_terms
from spark_sink.lake.parquet_landing import Layout
from spark_sink.lake.table_addresses import CATALOG, is_iceberg, local_path, storage_options
from spark_sink.lake.table_settings import TableSettings
from spark_sink.options.option_texts import choice, flag, group_name, number, whole
from spark_sink.options.source_options import _KNOWN as _SOURCE
from spark_sink.options.value_format import REGISTRY
from spark_sink.sink.topic_routes import Routes

_PROPERTY = "tableproperty."
_VECTORS = "delta.enableDeletionVectors"
_DELTA_PROPERTIES = """
appendOnly autoOptimize.autoCompact autoOptimize.optimizeWrite checkpoint.writeStatsAsJson checkpoint.writeStatsAsStruct
checkpointInterval checkpointPolicy columnMapping.mode dataSkippingNumIndexedCols dataSkippingStatsColumns
deletedFileRetentionDuration enableChangeDataFeed enableDeletionVectors enableExpiredLogCleanup isolationLevel
logRetentionDuration minReaderVersion minWriterVersion randomizeFilePrefixes randomPrefixLength
setTransactionRetentionDuration targetFileSize tuneFileSizesForRewrites
"""
# Spark passes names of options in lower case, and delta-rs knows its properties by their case.
_SPELLED = {f"delta.{name}".lower(): f"delta.{name}" for name in _DELTA_PROPERTIES.split()}
# A quarantine is never append-only: a replay takes records out, and a rewind those that will be read again.
_APPEND_ONLY = "delta.appendOnly"
_CODECS = ("zstd", "snappy", "gzip", "brotli", "lz4", "none", "uncompressed")
_NO_COMPRESSION = {"uncompressed": "none"}  # Iceberg's and Spark's word, and Arrow's
_NEEDED = ("path", "kafka.group.id")
_NEEDED_BY_STREAMS = (*_NEEDED, "checkpointLocation")
_KNOWN = frozenset(
    {
        "agent",
        "batchid",
        "batchrun",
        "checkpointlocation",
        "columns",
        "compactevery",
        "compression",
        "endingoffsets",
        "mergeschema",
        "partitionby",
        "path",
        "routes",
        "startingoffsets",
        "tableformat",
        "topicids",
        "topicnotes",
    }
)
_BY_SPARK = frozenset({"queryname"})  # of a query with a name
_PREFIXES = ("kafka.", "storage.", REGISTRY, _PROPERTY, CATALOG)
DELTA_FORMAT, ICEBERG_FORMAT = "delta", "iceberg"
BATCH_RUN = "batchRun"


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOptions:
    """The options of the sink, checked.

    Attributes:
        routes: tables by topic.
        group: the consumer group whose positions the tables store.
        checkpoint: the query's checkpointLocation; empty for a batch write outside of a stream.
        agent: the agent's name, for the tables' history.
        storage: options of the object store.
        table: settings for creating and changing a table.
        compact_every: number of versions of a table between two compactions; 0 for never.
        topic_notes: whether the history of a table has the rows of each topic, too.
    """

    routes: Routes
    group: str
    checkpoint: str
    agent: str = ""
    storage: Mapping[str, str] = field(default_factory=dict)
    table: TableSettings = field(default_factory=TableSettings)
    compact_every: int = 100
    topic_notes: bool = False

    @classmethod
    def parse(cls, options: Mapping[str, str], *, stream: bool = True) -> "SinkOptions":
        """Read the options passed to `.option(...)`; names are case-insensitive, as in Spark.

        Args:
            options: of the query, or of a batch write.
            stream: whether the rows are those of a stream's batch, which is in the query's checkpoint.

        Raises:
            OptionError: an option is unknown, missing or invalid.
        """
        given = {name.lower(): value for name, value in options.items()}
        iceberg = _is_iceberg(given)
        sink = f"{ICEBERG_FORMAT if iceberg else DELTA_FORMAT}-exactly-once"
        for name in _NEEDED_BY_STREAMS if stream else _NEEDED:
            if not given.get(name.lower()):
                raise OptionError(f"{sink} needs the option {name!r}")
        for name in given:
            # Options of the source are ignored, because both sides of a query may have the same options.
            if name not in _KNOWN | _BY_SPARK | _SOURCE and not name.startswith(_PREFIXES):
                prefixes = f"{'catalog.*, ' if iceberg else ''}storage.*, tableProperty.*"
                known = proposal(name, _KNOWN) or f"known are {prefixes} and {sorted(_KNOWN)}"
                raise OptionError(f"{sink} has no option {name!r}; {known}")
        _refuse_unsupported(given, iceberg=iceberg)
        if stream:
            local_path(given["checkpointlocation"])  # the commits read Spark's offset log there
        codec = choice(given, "compression", _CODECS)
        layout = Layout(
            partition_columns=() if iceberg else partition_columns(given.get("partitionby", "")),
            compression=_NO_COMPRESSION.get(codec, codec),
        )
        merge, topic_notes = (flag(given, name, default=False) for name in ("mergeSchema", "topicNotes"))
        terms = parse_terms(given.get("partitionby", "")) if iceberg else ()
        named = {name[len(_PROPERTY) :]: value for name, value in options.items() if name.lower().startswith(_PROPERTY)}
        properties = {_SPELLED.get(name.lower(), name): value for name, value in named.items()}
        if properties.get(_VECTORS, "false").lower() == "true":
            raise OptionError(
                f"option 'tableProperty.{_VECTORS}': the commands verify, rewind and repair cannot read deletion "
                "vectors; leave it out"
            )
        return cls(
            routes=_iceberg_routes(given) if iceberg else _delta_routes(given),
            group=group_name(given["kafka.group.id"]),
            checkpoint=given["checkpointlocation"] if stream else "",
            agent=given.get("agent", ""),
            storage=storage_options(options),
            table=TableSettings(layout=layout, properties=properties, merge_schema=merge, terms=terms),
            compact_every=number(given, "compactEvery", 100, least=0) or 0,
            topic_notes=topic_notes,
        )

    @property
    def iceberg(self) -> bool:
        """Whether the tables are Iceberg's."""
        return is_iceberg(self.routes.default)

    @property
    def quarantine(self) -> TableSettings:
        """Settings for creating a quarantine: it has its own columns, and no partitions."""
        kept = {name: value for name, value in self.table.properties.items() if name != _APPEND_ONLY}
        return TableSettings(properties=kept)


def partition_columns(text: str) -> tuple[str, ...]:
    """Return the partition columns of a Delta table from the option `partitionBy`.

    Raises:
        OptionError: a column is there twice.
    """
    found = tuple(one.strip() for one in text.split(",") if one.strip())
    if len({*found}) < len(found):
        raise OptionError(f"option 'partitionBy': {text!r} has a column twice")
    return found


def _is_iceberg(given: Mapping[str, str]) -> bool:
    kind = given.get("tableformat", DELTA_FORMAT).lower()
    if kind not in {DELTA_FORMAT, ICEBERG_FORMAT}:
        raise OptionError(f"option 'tableFormat': {kind!r}, need {DELTA_FORMAT} or {ICEBERG_FORMAT}")
    return kind == ICEBERG_FORMAT or is_iceberg(given.get("path", ""))


def _refuse_unsupported(given: Mapping[str, str], *, iceberg: bool) -> None:
    """Refuse options of the other format."""
    stray = next((name for name in given if name.startswith(CATALOG)), None)
    if stray and not iceberg:
        raise OptionError(f"option {stray!r} is for Iceberg tables; a Delta table has no catalog")


def _delta_routes(given: Mapping[str, str]) -> Routes:
    routes = Routes.parse(given["path"], given.get("routes"))
    if stray := next((address for address in routes.addresses() if is_iceberg(address)), None):
        raise OptionError(
            f"option 'routes': {stray} is an Iceberg table and option 'path' a Delta table; the tables of a query must "
            "be of one format, so write them with two queries"
        )
    return routes


def _iceberg_routes(given: Mapping[str, str]) -> Routes:
    routes = Routes.parse(iceberg_address(given["path"]), given.get("routes"), address=iceberg_address)
    if len({address.split(".")[0] for address in routes.addresses()}) > 1:
        raise OptionError("option 'routes': the tables of a query must be in one catalog")
    return routes


def option_value(options: Mapping[str, str], name: str) -> str | None:
    """Return the value of an option, in whatever case its name is written; None without it."""
    return next((value for one, value in options.items() if one.lower() == name.lower()), None)


def batch_number(options: Mapping[str, str]) -> int | None:
    """Return the batch that a batch write commits, from the option `batchId`; None without one.

    Raises:
        OptionError: it is not the number of a batch.
    """
    text = option_value(options, "batchId")
    found = None if text is None else whole(text)
    if text is not None and (found is None or found < 0):
        raise OptionError(f"option 'batchId': {text!r}, need the number that Spark passes to foreachBatch's function")
    return found
