"""What is in a value: JSON, Avro or Protobuf, decoded by the Arrow batch, with bad records kept beside the good."""

from spark_sink.formats._decoder import Bad, Decoded, Decoder, decode_batch, decoded_schema
from spark_sink.formats._json import JsonDecoder, infer_columns
from spark_sink.formats._registered import AvroDecoder, ProtobufDecoder
from spark_sink.formats._registry import Registry, read_header

__all__ = [
    "AvroDecoder",
    "Bad",
    "Decoded",
    "Decoder",
    "JsonDecoder",
    "ProtobufDecoder",
    "Registry",
    "decode_batch",
    "decoded_schema",
    "infer_columns",
    "read_header",
]
