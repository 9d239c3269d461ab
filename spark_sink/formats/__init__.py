"""What is in a value: JSON, Avro or Protobuf, decoded by the Arrow batch, with bad records kept beside the good."""

import typing

from spark_sink import _lazy

if typing.TYPE_CHECKING:
    from spark_sink.formats._decoder import Bad, Decoded, Decoder, decode_batch, decoded_schema
    from spark_sink.formats._json import JsonDecoder, infer_columns
    from spark_sink.formats._registered import AvroDecoder, ProtobufDecoder
    from spark_sink.formats._registry import Registry, read_header
    from spark_sink.formats._variant import VariantDecoder

# Loaded when asked for: the raw format needs none of the libraries behind them.
_HOMES = {
    "AvroDecoder": "_registered",
    "Bad": "_decoder",
    "Decoded": "_decoder",
    "Decoder": "_decoder",
    "JsonDecoder": "_json",
    "ProtobufDecoder": "_registered",
    "Registry": "_registry",
    "VariantDecoder": "_variant",
    "decode_batch": "_decoder",
    "decoded_schema": "_decoder",
    "infer_columns": "_json",
    "read_header": "_registry",
}

__all__ = [
    "AvroDecoder",
    "Bad",
    "Decoded",
    "Decoder",
    "JsonDecoder",
    "ProtobufDecoder",
    "Registry",
    "VariantDecoder",
    "decode_batch",
    "decoded_schema",
    "infer_columns",
    "read_header",
]


def __getattr__(name: str) -> typing.Any:  # noqa: ANN401 -- whatever the name stands for
    return _lazy.attribute(__name__, _HOMES, name)
