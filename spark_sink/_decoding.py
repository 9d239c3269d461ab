"""The decoder that the options of a source ask for."""

from collections.abc import Iterator

import pyarrow as pa

from spark_sink._errors import OptionError
from spark_sink._fetch import fetch
from spark_sink._logs import Logs
from spark_sink._offsets import Range
from spark_sink._options import SourceOptions
from spark_sink.formats import AvroDecoder, Decoder, JsonDecoder, ProtobufDecoder, Registry, infer_columns
from spark_sink.formats._json import given_columns
from spark_sink.formats._registered import given_avro, latest_of


def make_decoder(options: SourceOptions, known: pa.Schema | None = None) -> Decoder | None:
    """Make the decoder of a source.

    Args:
        options: of the source.
        known: the columns of the query, where they have been decided: a sample may look otherwise a second time.

    Returns:
        None for the raw format.

    Raises:
        OptionError: no columns can be found by these options.
        FetchError: the registry or the brokers do not answer.
    """
    value = options.value
    if value.name == "raw":
        return None
    if value.name == "json":
        return JsonDecoder(_json_columns(options, known))
    registry = Registry(value.registry, serialized=value.name == "protobuf")
    assert value.subject is not None  # noqa: S101 -- the options have been checked
    if value.name == "avro":
        return AvroDecoder(registry, given_avro(value.schema) if value.schema else latest_of(registry, value.subject))
    return ProtobufDecoder(registry, latest_of(registry, value.subject), value.message)


def _json_columns(options: SourceOptions, known: pa.Schema | None) -> pa.Schema:
    if options.value.schema:
        return given_columns(options.value.schema)
    if known is not None:
        from spark_sink._quarantine import COLUMN  # noqa: PLC0415 -- only for this branch
        from spark_sink._rows import arrow_schema  # noqa: PLC0415 -- as above

        taken = {*arrow_schema(headers=True).names, COLUMN}
        return pa.schema([field for field in known if field.name not in taken])
    return infer_columns(_sample(options))


def _sample(options: SourceOptions) -> Iterator[bytes | None]:
    """The last records of each partition, some of every topic."""
    logs = Logs(options)
    keys = sorted(logs.subscribed())
    first, last = logs.beginnings(keys), logs.ends(keys)
    known = [key for key in keys if key in first and last.get(key, 0) > first[key]]
    if not known:
        raise OptionError("no record is there to infer a schema from: give it with the option 'valueSchema'")
    each = max(1, options.value.sample // len(known))
    pieces = [Range(*key, max(first[key], last[key] - each), last[key]) for key in known]
    for batch in fetch(pieces, options.fetch):
        yield from batch.column("value").to_pylist()
