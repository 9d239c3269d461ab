"""Creates the decoder from the options of a source."""

from collections.abc import Iterator

import pyarrow as pa
import structlog

from spark_sink.errors import OptionError
from spark_sink.formats import Decoder
from spark_sink.options.source_options import SourceOptions
from spark_sink.options.value_format import TABLE_SCHEMA
from spark_sink.ranges.batch_offset import Range

VARIANT_SCHEMA = "variant"  # in place of a schema: one column of Spark's variant type

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
    if options.value.name == "raw":
        return None
    try:
        made = _decoder(options, known)
    except ImportError as error:
        raise OptionError(
            f"valueFormat={options.value.name} needs a library that is not installed ({error}): "
            "pip install 'kafka-azimuth[formats]'"
        ) from error
    made.nulls = options.value.nulls
    return made


def _decoder(options: SourceOptions, known: pa.Schema | None) -> Decoder:
    # Imported here, because each format has its own libraries, and the raw format needs none of them.
    value = options.value
    if value.name == "json":
        return _json_decoder(options, known)
    from spark_sink.formats import AvroDecoder, ProtobufDecoder, Registry  # noqa: PLC0415 -- as said above
    from spark_sink.formats.registry_decoders import given_avro, latest_of  # noqa: PLC0415 -- as said above

    registry = Registry(value.registry, serialized=value.name == "protobuf")
    assert value.subject is not None  # noqa: S101 -- the options have been checked
    if value.name == "avro":
        latest = given_avro(value.schema) if value.schema else latest_of(registry, value.subject)
        return AvroDecoder(registry, latest, value.unknown)
    return ProtobufDecoder(registry, latest_of(registry, value.subject), value.message, value.unknown)


def _json_decoder(options: SourceOptions, known: pa.Schema | None) -> Decoder:
    from spark_sink.formats import JsonDecoder, VariantDecoder  # noqa: PLC0415 -- as said above

    if (options.value.schema or "").strip().lower() == VARIANT_SCHEMA:
        return VariantDecoder()
    given = options.value.schema not in {None, TABLE_SCHEMA}
    return JsonDecoder(_json_columns(options, known), options.value.unknown, texts=not given)


def _json_columns(options: SourceOptions, known: pa.Schema | None) -> pa.Schema:
    from spark_sink.formats import infer_columns  # noqa: PLC0415 -- as said above
    from spark_sink.formats.decoder import RESERVED  # noqa: PLC0415 -- as said above
    from spark_sink.formats.json_schema import given_columns  # noqa: PLC0415 -- as said above

    kept = options.value.schema == TABLE_SCHEMA
    if options.value.schema and not kept:
        return given_columns(options.value.schema)
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
    from spark_sink.source.table_columns import kept_columns  # noqa: PLC0415

    assert options.positions is not None  # noqa: S101 -- the options have been checked
    return kept_columns(options.positions, options.storage)


def _with_new(columns: pa.Schema, sample: Iterator[bytes | None]) -> pa.Schema:
    from spark_sink.formats import JsonDecoder  # noqa: PLC0415 -- as said above
    from spark_sink.formats.json_evolution import new_columns  # noqa: PLC0415 -- as said above

    rescued = JsonDecoder(columns, "evolve", texts=True).decode(list(sample)).columns[-1]
    return pa.schema([*columns, *new_columns(rescued.drop_null().to_pylist(), columns)])


def _sample(options: SourceOptions) -> Iterator[bytes | None]:
    """Yield the last records of each partition, some of every topic."""
    # Imported here: the processes that plan a query without a sample need no client of Kafka.
    from spark_sink.fetch.range_reader import fetch  # noqa: PLC0415
    from spark_sink.kafka.partition_offsets import PartitionOffsets  # noqa: PLC0415

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
