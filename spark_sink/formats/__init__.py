"""The formats of values: JSON, Avro and Protobuf, decoded per Arrow batch, with bad records kept next to good ones."""

import typing

from assignors import lazy

if typing.TYPE_CHECKING:
    from spark_sink.formats.declared_or_inferred_columns import infer_columns
    from spark_sink.formats.decoder import Bad, Decoded, Decoder, decode_batch, decoded_schema
    from spark_sink.formats.json_decoder import JsonDecoder
    from spark_sink.formats.registry_decoders import AvroDecoder, ProtobufDecoder
    from spark_sink.formats.schema_registry import Registry, read_header
    from spark_sink.formats.variant_decoder import VariantDecoder

# Loaded at first use, because the raw format needs none of their libraries.
_HOMES = {
    "AvroDecoder": "registry_decoders",
    "Bad": "decoder",
    "Decoded": "decoder",
    "Decoder": "decoder",
    "JsonDecoder": "json_decoder",
    "ProtobufDecoder": "registry_decoders",
    "Registry": "schema_registry",
    "VariantDecoder": "variant_decoder",
    "decode_batch": "decoder",
    "decoded_schema": "decoder",
    "infer_columns": "declared_or_inferred_columns",
    "read_header": "schema_registry",
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
    return lazy.attribute(__name__, _HOMES, name)
