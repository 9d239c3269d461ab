"""The formats of values: JSON, Avro and Protobuf, decoded per Arrow batch, with bad records kept next to good ones.

* `decoder`: decodes raw batches; a record that cannot be decoded becomes a row with the reason.
* `bad_values_quarantined`: the columns of records that could not be decoded; `quarantine_addresses`: their tables.
* `arrow_columns`: converts Python values into Arrow columns of a given type.
* `unknown_policy`: what to do with unknown fields, and with records without a value; `unknown_fields`: finds them.
* `calendar_dates`: finds dates that the lake's engines cannot read in a partition column.
* `json_decoder`: decodes JSON objects into columns; `json_arrays`: converts parsed JSON into Arrow strictly.
* `json_compiled`: the same for most rows in C, if there was a compiler at the build.
* `json_text`: JSON text of decoded values, with every original digit.
* `json_evolution`: columns of JSON values that a table defines.
* `declared_or_inferred_columns`: columns of JSON values from an option, or from a sample of records.
* `variant_decoder`: decodes JSON values of any shape; `variant_type`: Spark's variant type in Arrow.
* `schema_registry`: schemas by id; `registry_decoders`: Avro and Protobuf in the wire format of registries.
* `avro`: Avro's columns and rows; `avro_limits`: refuses values that would end the process; `avro_resolution`: the
  fields of a writer's schema that the reader's schema knows.
* `protobuf`: Protobuf's columns and rows; `protobuf_fit`: whether a writer's field fits a column;
  `protobuf_unknown`: finds the fields that the latest schema lacks.
"""

import typing

from assignors import lazy_imports

if typing.TYPE_CHECKING:
    from spark_sink.formats.declared_or_inferred_columns import infer_columns
    from spark_sink.formats.decoder import Bad, Decoded, Decoder, decode_batch, decoded_schema
    from spark_sink.formats.json_decoder import JsonDecoder
    from spark_sink.formats.registry_decoders import AvroDecoder, ProtobufDecoder
    from spark_sink.formats.schema_registry import Registry, read_header
    from spark_sink.formats.variant_decoder import VariantDecoder
else:
    # Loaded at first use, because the raw format needs none of their libraries.
    __getattr__ = lazy_imports.attributes(
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
