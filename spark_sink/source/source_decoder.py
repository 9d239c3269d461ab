"""Creates the decoder from the options of a source."""

from collections.abc import Iterator

import pyarrow as pa
import structlog

from spark_sink.errors import OptionError
from spark_sink.formats import Decoder
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_decoders import make_value_decoder
from spark_sink.options.value_format import TABLE_SCHEMA
from spark_sink.ranges.batch_offset import Range

_log = structlog.get_logger("azimuth.source")


def make_decoder(options: SourceOptions, known: pa.Schema | None = None) -> Decoder | None:
    """Create the decoder of a source.

    Args:
        options: options of the source.
        known: the columns of the query, if they are fixed: a second sample might give other columns.

    Returns:
        None for the raw format.

    Raises:
        OptionError: no columns can be found by these options, or a library for the format is not installed.
        FetchError: the registry or the brokers do not answer.
    """
    given = options.value.schema not in {None, TABLE_SCHEMA}
    return make_value_decoder(options.value, None if given else lambda: _json_columns(options, known))


def _json_columns(options: SourceOptions, known: pa.Schema | None) -> pa.Schema:
    # Imported here, because the raw format needs none of the libraries of the others.
    from spark_sink.formats import infer_columns
    from spark_sink.formats.decoder import RESERVED

    kept = options.value.schema == TABLE_SCHEMA
    if known is not None:
        return pa.schema([field for field in known if field.name not in RESERVED])
    found = _kept(options) if kept else None
    if found is not None and options.value.unknown != "evolve":
        return found
    if not kept:
        _log.warning(
            "columns are inferred from a sample at each start, so queries that start at different times may differ: "
            "set valueSchema to the columns as JSON; `azimuth sink` takes the columns of its table (valueSchema=table)"
        )
    # Members with the name of one of the record's own columns are unknown fields, handled by the policy.
    skipped = RESERVED if options.value.unknown in {"rescue", "evolve"} else ()
    if found is None:
        return infer_columns(_sample(options), skipped)
    # Columns of Spark's rows are fixed for a query, so fields that only a sample has become columns at its start.
    return _with_new(found, _sample(options))


def _kept(options: SourceOptions) -> pa.Schema | None:
    """Return the columns of the query's tables."""
    # Imported here, so that a query without a table needs no deltalake.
    from spark_sink.source.table_columns import kept_columns

    assert options.positions is not None  # noqa: S101 -- the options have been checked
    return kept_columns(options.positions, options.storage)


def _with_new(columns: pa.Schema, sample: Iterator[bytes | None]) -> pa.Schema:
    from spark_sink.formats import JsonDecoder
    from spark_sink.formats.json_evolution import new_columns

    rescued = JsonDecoder(columns, "evolve", texts=True).decode(list(sample)).columns[-1]
    return pa.unify_schemas([columns, new_columns(rescued.drop_null().to_pylist(), columns)])


def _sample(options: SourceOptions) -> Iterator[bytes | None]:
    """Yield the last records of each partition, some of every topic."""
    # Imported here: the processes that plan a query without a sample need no client of Kafka.
    from spark_sink.fetch.range_reader import fetch
    from spark_sink.kafka.partition_offsets import PartitionOffsets

    logs = PartitionOffsets(options)
    keys = sorted(logs.subscribed())
    first, last = logs.beginnings(keys), logs.ends(keys)
    known = [key for key in keys if key in first and last.get(key, 0) > first[key]]
    if not known:
        named = f"pattern {options.pattern!r}" if options.pattern else f"topic {', '.join(options.topics)}"
        found = "no record is there" if keys else "there is no such topic"
        raise OptionError(
            f"{named} on {options.kafka['bootstrap.servers']}: {found} to infer a schema from: write a record first, "
            "or give the schema with the option 'valueSchema'"
        )
    each = max(1, options.value.sample // len(known))
    pieces = [Range(*key, max(first[key], last[key] - each), last[key]) for key in known]
    for batch in fetch(pieces, options.fetch):
        yield from batch.column("value").to_pylist()
