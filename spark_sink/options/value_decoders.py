"""Creates decoders of values whose schema is given, or in a registry. No records are read for it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pyarrow as pa

from spark_sink.errors import OptionError
from spark_sink.formats import Decoder
from spark_sink.options.value_format import ValueFormat

VARIANT_SCHEMA = "variant"  # in place of a schema: one column of Spark's variant type


@contextmanager
def needed_libraries(value: ValueFormat) -> Iterator[None]:
    """Convert the error of a missing library into one sentence.

    Raises:
        OptionError: a library for the format is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise OptionError(
            f"valueFormat={value.name} needs a library that is not installed ({error}): "
            "pip install 'kafka-azimuth[formats]'"
        ) from error


def make_value_decoder(value: ValueFormat, columns: Callable[[], pa.Schema] | None = None) -> Decoder | None:
    """Create the decoder of a format.

    Args:
        value: the format.
        columns: returns the columns of JSON values, if they are not in the option `valueSchema`.

    Returns:
        None for the raw format.

    Raises:
        OptionError: the schema is invalid or not in the registry, or a library for the format is not installed.
        FetchError: the registry does not answer.
    """
    if value.name == "raw":
        return None
    with needed_libraries(value):
        made = _json_decoder(value, columns) if value.name == "json" else _registry_decoder(value)
    made.nulls = value.nulls
    return made


def _json_decoder(value: ValueFormat, columns: Callable[[], pa.Schema] | None) -> Decoder:
    # Imported here, because each format has its own libraries, and the raw format needs none of them.
    from spark_sink.formats import JsonDecoder, VariantDecoder
    from spark_sink.formats.declared_or_inferred_columns import given_columns

    if (value.schema or "").strip().lower() == VARIANT_SCHEMA:
        return VariantDecoder()
    if columns is not None:
        return JsonDecoder(columns(), value.unknown, texts=True)
    return JsonDecoder(given_columns(value.schema or ""), value.unknown)


def _registry_decoder(value: ValueFormat) -> Decoder:
    from spark_sink.formats import AvroDecoder, ProtobufDecoder, Registry
    from spark_sink.formats.registry_decoders import given_avro, latest_of

    registry = Registry(value.registry, serialized=value.name == "protobuf")
    assert value.subject is not None  # noqa: S101 -- the options have been checked
    if value.name == "avro":
        latest = given_avro(value.schema) if value.schema else latest_of(registry, value.subject)
        return AvroDecoder(registry, latest, value.unknown)
    return ProtobufDecoder(registry, latest_of(registry, value.subject), value.message, value.unknown)
