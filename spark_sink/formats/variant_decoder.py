"""Decodes JSON values of any shape into one column of Spark's variant type, without a schema."""

from collections.abc import Sequence

import orjson
import pyarrow as pa
from pyspark.sql.types import VariantVal

from spark_sink.formats.decoder import Bad, Decoded
from spark_sink.formats.unknown_policy import NullPolicy, Policy
from spark_sink.formats.variant_type import VARIANT

COLUMN = "value"


class VariantDecoder:
    """Decodes JSON into the column `value` of Spark's variant type.

    The encoder is pyspark's own, with a Python step for each member: several times slower than known columns.
    """

    unknown: Policy = "ignore"  # a variant has a place for any field
    nulls: NullPolicy = "quarantine"

    @property
    def columns(self) -> pa.Schema:
        """One column."""
        return pa.schema([pa.field(COLUMN, VARIANT)])

    def decode(self, values: Sequence[bytes | None]) -> Decoded:
        """Decode the values of one batch."""
        bad: dict[int, Bad] = {}
        rows = [_encode(value, number, bad) for number, value in enumerate(values)]
        return Decoded([pa.array(rows, VARIANT)], bad)


def _encode(value: bytes | None, number: int, bad: dict[int, Bad]) -> dict[str, bytes] | None:
    if value is None:
        bad[number] = Bad("NullValue", "the record has no value")
        return None
    try:
        # Python's own parser, which the encoder uses, accepts NaN and lone surrogates as JSON.
        orjson.loads(value)
        found = VariantVal.parseJson(value.decode())
    except (orjson.JSONDecodeError, RecursionError) as error:
        bad[number] = Bad("NotJson", str(error))
        return None
    except ValueError as error:
        bad[number] = Bad("NoVariant", f"the value does not fit a variant: {error}")
        return None
    return {"value": found.value, "metadata": found.metadata}
