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
else:
    # Loaded at first use, because the raw format needs none of their libraries.
    __getattr__ = lazy.attributes(
        __name__,
        {
            "declared_or_inferred_columns": ["infer_columns"],
            "decoder": ["Bad", "Decoded", "Decoder", "decode_batch", "decoded_schema"],
            "json_decoder": ["JsonDecoder"],
            "registry_decoders": ["AvroDecoder", "ProtobufDecoder"],
            "schema_registry": ["Registry", "read_header"],
            "variant_decoder": ["VariantDecoder"],
        },
    )

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
